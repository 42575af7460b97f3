"""How a multi-engine program gets its semaphores (barrier-free, sections 4 to 6).

copies    dependencies between the copies that unrolling makes
intervals, bounds                what integers may be, and how often loops run at most
epochs    where semaphores start again, so that none passes its limit
needs     what each consumer waits for, as a formula over iterations
slices    what each engine keeps of the control flow
groups    which producers share a semaphore
plan      all of it, for every engine
counters, thresholds, streams    the plan as one stream an engine
"""
