"""What tests of several rooms share: traffic by hand, captures, commands, samples, brokers."""
