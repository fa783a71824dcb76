"""What every package builds on: errors, findings, settings, the benchmark."""
