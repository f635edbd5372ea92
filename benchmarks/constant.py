"""What the server is measured against: an endpoint of the same framework that returns a constant."""

from fastapi import FastAPI

app = FastAPI()


@app.post("/constant")
async def constant() -> dict[str, int]:
    return {"value": 1}
