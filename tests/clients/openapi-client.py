"""Calls the API by the client that openapi-python-client makes of the OpenAPI document. The end-to-end suite writes the
name of its database in place of DATABASE, and runs this file beside the package `api_client`.
"""

import importlib
import json
import os
import pkgutil

import api_client
from api_client import models
from api_client.types import UNSET

for module in pkgutil.walk_packages(api_client.__path__, "api_client."):
    importlib.import_module(module.name)

from api_client.api.DATABASE_kinds import DATABASE_kinds_list as list_kinds
from api_client.api.DATABASE_posts import DATABASE_posts_get as get, DATABASE_posts_insert as insert, DATABASE_posts_list as list_posts
from api_client.api.management import create_key, revoke_key

client = api_client.AuthenticatedClient(base_url=os.environ["SELKIE_URL"] + "/api/v1", token=os.environ["SELKIE_KEY"])
Insert = getattr(models, "DATABASE".title().replace("_", "") + "PostsInsert")

page = list_posts.sync(client=client, limit=1, query=json.dumps({"author_id": 1}), order=["-views"])
first = page.payload[0]
some = list_posts.sync(client=client, select_fields=["id", "title"]).payload[1]
assert some.views is UNSET
inserted = insert.sync(client=client, body=Insert(author_id=2, title="Tide", price="3.5"))
missing = get.sync(424242, client=client)
key = create_key.sync(client=client, body=models.CreateKeyBodyType0.from_dict({"access": "read", "name": "python"}))
revoke_key.sync(key.payload.id, client=client)
kind = list_kinds.sync(client=client).payload[0]
print(json.dumps([first.title, first.price, type(page.next_).__name__, some.title, inserted.payload, missing.error.code, kind.big, kind.extra]))
