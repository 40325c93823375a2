"""Client of hankeld, which finds change points in streams of sensor readings.

    import hankeld

    with hankeld.Client("127.0.0.1:7410") as client:
        client.send("machine temperature", 1700000000000000000, 21.5)     # time in ns since 1970
        client.send_columns("pump", times, values)                        # columns of numpy
        client.send_frame(frame, prefix="line 4 ")                        # a DataFrame of pandas
        client.send_picture("oven 3", pixels)                             # a thermal picture: an array of numpy
        client.sync()                                                     # the daemon has taken it over

    with hankeld.Client() as client:
        client.subscribe("machine*", min_score=0.8)
        for item in client:                                               # Result, Event, Incident or Gap
            if isinstance(item, hankeld.Event) and item.kind == "raised" and not item.maintenance:
                print(item.sensor, hankeld.level(item.severity))

    with hankeld.Client(feed="gateway 7") as client:                      # each point counts once:
        for reading in readings[client.position:]:                        # the daemon has so many of this feed already
            client.send(*reading)

    async with hankeld.AsyncClient() as client:                           # the same with asyncio
        await client.subscribe()
        async for item in client:
            ...

PROTOCOL.md describes the protocol.
"""
from .aio import AsyncClient
from .client import Client
from .items import CHANNELS, EVENTS, INCIDENTS, NOVELTIES, REFUSALS, SEVERE, STATES, WARNING, Event, Gap, Incident, Item, Limit, Novelty, Result, Scores, level
from .wire import Error

__all__ = ["AsyncClient", "CHANNELS", "Client", "EVENTS", "Error", "Event", "Gap", "INCIDENTS", "Incident", "Item", "Limit", "NOVELTIES", "Novelty", "REFUSALS", "Result", "SEVERE", "STATES", "Scores", "WARNING",
           "level"]
__version__ = "0.1.0"
