-- What a reviewer says of a request, as JSON.
ALTER TABLE haft.approvals ADD COLUMN review text;
