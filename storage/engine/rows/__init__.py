"""The SQL of each noun: functions over an open connection, one file a family."""
