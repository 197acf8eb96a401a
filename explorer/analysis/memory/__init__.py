"""Which buffers are alive at each step of the schedule, and which may share memory."""
