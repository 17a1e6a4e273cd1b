"""`kafkascope demo`, its tour, and what the program says about itself."""
