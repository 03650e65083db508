"""What a person says about a stream, and as whom that is carried out."""
