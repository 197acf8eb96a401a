"""File formats: captures, executables, ledgers, instruction logs, SARIF, Perfetto, Model Explorer."""
