"""Work that other processes do, given out through anything with the interface of `concurrent.futures.Executor`."""
