"""What is kept of a stream on HDFS, and the run that reads and writes it."""
