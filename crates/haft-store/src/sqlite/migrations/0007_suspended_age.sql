-- Old suspended calls are swept by their age.
CREATE INDEX suspended_calls_noted ON suspended_calls (noted);

PRAGMA user_version = 7;
