"""Records live traffic into capture files and pipes, without slowing it down."""
