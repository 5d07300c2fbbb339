-- Why a request ended without its call, for whoever reads about it.
ALTER TABLE approvals ADD COLUMN why TEXT;

PRAGMA user_version = 9;
