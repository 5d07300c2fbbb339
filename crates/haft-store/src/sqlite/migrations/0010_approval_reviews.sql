-- What a reviewer says of a request, as JSON. Few have one: the table of requests stays as it is.
CREATE TABLE approval_reviews (
    id     TEXT NOT NULL PRIMARY KEY,
    review TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER approval_reviews_gone AFTER DELETE ON approvals BEGIN
    DELETE FROM approval_reviews WHERE id = old.id;
END;

PRAGMA user_version = 10;
