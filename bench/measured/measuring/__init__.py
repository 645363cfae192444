"""What measure.py is made of; its files are in the order in which a run goes through them:

jobs       draws random jobs                         nets, zoo   build their models
diffusion, language, vision_language  draw models of published sizes; pictures: what processors make of images
workers    starts the processes that measure         worker      such a process
training   runs a job's steps and reads the figures  device      a GPU, or none; nvml: the driver's counters
summaries  writes models as graph JSON and as text   journal     keeps the results, tables and packs them
census     workspaces and recordings in a worker     convolutions  draws those of the census
constants  what context and libraries take           surveys     parts census and constants; sampling: part jobs
session    one call of measure.py                    card, profiles  what a folder of results says of itself
"""
