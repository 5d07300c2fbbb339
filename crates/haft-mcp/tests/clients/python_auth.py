"""A server on the Python SDK 1.30 that requires a token, and its authorization server: `python_auth.py PORT`.

Its page agrees at once. Tokens expire after a second, so that they must be renewed. It has one tool, `whoami`. It prints the
tokens that it sees to standard output, one line each.
"""

import sys
import time
from secrets import token_hex

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.fastmcp import FastMCP
from mcp.shared.auth import OAuthToken

PORT = int(sys.argv[1])
HERE = f"http://127.0.0.1:{PORT}"
SCOPES = ["tickets"]


class Provider(OAuthAuthorizationServerProvider):
    def __init__(self):
        self.clients, self.codes, self.tokens, self.renewals = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client):
        print("registered", client.application_type if hasattr(client, "application_type") else "", flush=True)
        self.clients[client.client_id] = client

    async def authorize(self, client, params):
        code = AuthorizationCode(
            code=token_hex(16),
            client_id=client.client_id,
            scopes=params.scopes or SCOPES,
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, code):
        return self.codes.get(code)

    async def exchange_authorization_code(self, client, code):
        del self.codes[code.code]
        print("exchanged", code.resource, flush=True)
        return self.give(client.client_id, code.scopes, code.resource)

    async def load_refresh_token(self, client, token):
        return self.renewals.get(token)

    async def exchange_refresh_token(self, client, token, scopes):
        del self.renewals[token.token]
        print("renewed", flush=True)
        return self.give(client.client_id, scopes, f"{HERE}/mcp")

    async def load_access_token(self, token):
        return self.tokens.get(token)

    async def revoke_token(self, token):
        print("revoked", type(token).__name__, flush=True)
        self.tokens.pop(token.token, None)
        self.renewals.pop(token.token, None)

    def give(self, client_id, scopes, resource):
        token, renewal = f"secret-{token_hex(16)}", f"secret-{token_hex(16)}"
        ends = int(time.time()) + 3600
        self.tokens[token] = AccessToken(token=token, client_id=client_id, scopes=scopes, expires_at=ends, resource=resource)
        self.renewals[renewal] = RefreshToken(token=renewal, client_id=client_id, scopes=scopes)
        # It expires at once, so that the next call must renew it.
        return OAuthToken(access_token=token, refresh_token=renewal, expires_in=1, scope=" ".join(scopes))


server = FastMCP(
    "guarded",
    host="127.0.0.1",
    port=PORT,
    log_level="ERROR",
    auth_server_provider=Provider(),
    auth=AuthSettings(
        issuer_url=HERE,
        resource_server_url=f"{HERE}/mcp",
        validate_token_resource=True,
        required_scopes=SCOPES,
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES, default_scopes=SCOPES),
        revocation_options=RevocationOptions(enabled=True),
    ),
)


@server.tool()
async def whoami() -> str:
    """Returns the scopes of the call's token."""
    return "in with " + " ".join(get_access_token().scopes)


server.run(transport="streamable-http")
