"""fastapi_torch: the service that most people would write first, with FastAPI and PyTorch.

    OMP_NUM_THREADS=1 python3 -m uvicorn fastapi_torch:app --port PORT --workers 2

Debian: python3-fastapi python3-uvicorn python3-torch. The weights are random.
"""
import json

import torch
from fastapi import FastAPI, Request, Response

torch.set_num_threads(1)  # two workers, two cores
torch.manual_seed(0)

LAYER = {width: torch.nn.MultiheadAttention(width, heads, bias=False, batch_first=True).eval()
         for width, heads in ((100, 5), (512, 8))}

app = FastAPI()


@app.post("/v1/attention")
async def attention(request: Request):
    fields = json.loads(await request.body())
    with torch.inference_mode():
        queries, keys, values = (torch.tensor(fields[name])
                                 for name in ("queries", "keys", "values"))
        hidden = torch.arange(keys.shape[1])[None] >= torch.tensor(fields["valid_lens"])[:, None]
        outputs, _ = LAYER[queries.shape[2]](queries, keys, values, key_padding_mask=hidden,
                                             need_weights=False)
    return Response(json.dumps({"outputs": outputs.tolist()}), media_type="application/json")
