"""YARN, HDFS and what we know of one cluster."""
