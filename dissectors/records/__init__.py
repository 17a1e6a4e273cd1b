"""Record batches and message sets: headers, compression, records, as values, bytes and trees."""
