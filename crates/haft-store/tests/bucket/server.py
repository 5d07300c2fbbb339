"""An S3 server for tests on a free loopback port, controlled by JSON lines; it ends with its input."""

import datetime
import functools
import json
import os
import sys
import threading
from urllib.parse import parse_qsl, quote, urlencode

import boto3
from moto import settings
from moto.backends import get_backend
from moto.iam.access_control import S3IAMRequest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.server import ThreadedMotoServer
from werkzeug.serving import make_server, make_ssl_devcert

port = 0
server = None


def start():
    global server, port
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    port = server.get_host_and_port()[1]
    return {"port": port}


@functools.cache
def client(service):
    known = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
    return boto3.client(service, endpoint_url=f"http://127.0.0.1:{port}", **known)


def encrypt(folder):
    """Serves the same buckets over TLS, as localhost; the certificate is in the folder."""
    cert, key = make_ssl_devcert(os.path.join(folder, "server"), host="localhost")
    encrypted = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), True, ssl_context=(cert, key))
    threading.Thread(target=encrypted.serve_forever, daemon=True).start()
    return {"port": encrypted.port, "certificate": cert}


def bucket(name):
    return get_backend("s3")["123456789012"]["aws"].buckets[name]


def bolt():
    """From now on only one user has access; returns the user's key."""
    iam = client("iam")
    iam.create_user(UserName="haft")
    key = iam.create_access_key(UserName="haft")["AccessKey"]
    allow = {"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}], "Version": "2012-10-17"}
    iam.put_user_policy(UserName="haft", PolicyName="all", PolicyDocument=json.dumps(allow))
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    return {"id": key["AccessKeyId"], "secret": key["SecretAccessKey"]}


def signed(request, made=S3IAMRequest._create_aws_request):
    """Restores what was signed: the query as received, encoded."""
    path, mark, query = request._path.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    request._path = path + mark + urlencode(pairs, quote_via=quote)
    return made(request)


S3IAMRequest._create_aws_request = signed


def do(job):
    match job["do"]:
        case "start":
            return start()
        case "stop":
            return server.stop()
        case "bolt":
            return bolt()
        case "encrypt":
            return encrypt(job["folder"])
        case "bucket":
            return client("s3").create_bucket(Bucket=job["bucket"]) and None
        case "keys":
            return sorted(bucket(job["bucket"]).keys.keys())
        case "fresh":
            day = datetime.timedelta(days=1)
            now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
            found = bucket(job["bucket"]).keys
            return sorted(name for name in found.keys() if now - found[name].last_modified.replace(tzinfo=None) < day)
        case "write":
            body = bytes.fromhex(job["hex"])
            return client("s3").put_object(Bucket=job["bucket"], Key=job["key"], Body=body) and None
        case "age":
            key = bucket(job["bucket"]).keys[job["key"]]
            key.last_modified -= datetime.timedelta(seconds=job["seconds"])


# The replies are for the test alone; the server's own output goes elsewhere.
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)
for line in sys.stdin:
    print(json.dumps(do(json.loads(line))), file=answers)
# Its threads would wait for connections that are kept open.
os._exit(0)
