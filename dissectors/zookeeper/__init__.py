"""ZooKeeper's protocol, as Kafka up to 3.9 speaks it: requests by their types, frames into values,
what the paths of nodes mean, and what is in the nodes. Knows nothing of connections."""
