"""ZooKeeper's tree and sessions, as requests, answers and watch events showed them."""
