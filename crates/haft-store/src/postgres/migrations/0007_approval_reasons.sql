-- Why a request ended without its call, for whoever reads about it.
ALTER TABLE haft.approvals ADD COLUMN why text;
