module github.com/kafkascope/kafkascope/bindings/go

go 1.22
