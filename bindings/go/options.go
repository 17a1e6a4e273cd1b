package kafkascope

// Option says how a proxy, a served capture, or the reading of one is to be.
type Option func(*settings)

type settings struct {
	command   []string
	listen    string
	arguments []string // of the proxy or of serve
	schemas   []string // of them, and of what reads the capture
	keep      string
}

func chosen(options []Option) settings {
	s := settings{listen: "127.0.0.1:0"}
	for _, each := range options {
		each(&s)
	}
	return s
}

// Fault is a rule from the start: "api == Produce -> error NOT_LEADER_OR_FOLLOWER once".
func Fault(rule string) Option {
	return Arguments("--fault", rule)
}

// Hold holds from the start what matches a filter.
func Hold(filter string) Option {
	return Arguments("--hold", filter)
}

// Schemas decodes keys and values with the schemas of these folders, in filters and in records.
func Schemas(folders ...string) Option {
	return func(s *settings) {
		for _, each := range folders {
			s.schemas = append(s.schemas, "--schemas", each)
		}
	}
}

// TopicSchema decodes the values of a topic ("orders"), or its keys ("orders:key"), with the schema
// in a file.
func TopicSchema(topic, file string) Option {
	return func(s *settings) { s.schemas = append(s.schemas, "--schema", topic+"="+file) }
}

// Registry asks the schema registry at this URL for schemas.
func Registry(url string) Option {
	return func(s *settings) { s.schemas = append(s.schemas, "--registry", url) }
}

// Listen is where clients connect, in place of a free port of 127.0.0.1.
func Listen(address string) Option {
	return func(s *settings) { s.listen = address }
}

// Arguments are further ones of kafkascope proxy, or of kafkascope serve: TLS and so on.
func Arguments(words ...string) Option {
	return func(s *settings) { s.arguments = append(s.arguments, words...) }
}

// Command starts kafkascope with these words, whatever the environment says.
func Command(words ...string) Option {
	return func(s *settings) { s.command = words }
}

// KeepIn is the folder for captures of tests that failed.
func KeepIn(folder string) Option {
	return func(s *settings) { s.keep = folder }
}
