-- Old suspended calls are swept by their age.
CREATE INDEX suspended_calls_noted ON haft.suspended_calls (noted);
