"""Applications and the topics between them; the way of records from producers to groups."""
