"""The emergency room of lesson 15: small training runs, each healthy or with one of ten faults.

from hookedu.models.ward import FAULTS, HEALTHY, admit, train
patient = admit(seed=4)
model, optimizer = patient.build()
losses = train(model, optimizer, patient.data)
"""

from hookedu.models.ward.charts import FAULTS, HEALTHY
from hookedu.models.ward.patient import Patient, admit
from hookedu.models.ward.training import train

__all__ = ["FAULTS", "HEALTHY", "Patient", "admit", "train"]
