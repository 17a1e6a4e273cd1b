"""Other names for what must not leave the house: topics, clients, hosts, parts of paths. Which
values are names, others say."""
