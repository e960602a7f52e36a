"""highs_solve.py MODEL.mps ANSWER: solves a model with HiGHS (pip install highspy).

One thread, gap 0 (absolute gap below one quantum). Writes the non-zero columns to ANSWER in the form
of CBC's solution files, and the CPU seconds of the solve alone to ANSWER.time.
"""
import sys
import time

import highspy

model, answer = sys.argv[1:3]
highs = highspy.Highs()
for name, value in (("output_flag", False), ("threads", 1), ("mip_rel_gap", 0.0),
                    ("mip_abs_gap", 0.999)):
    highs.setOptionValue(name, value)
highs.readModel(model)
start = time.process_time()
highs.run()
seconds = time.process_time() - start
optimal = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
names = [highs.getColName(c)[1] for c in range(highs.getNumCol())]
with open(answer, "w") as file:
    file.write("Optimal\n" if optimal else "Stopped\n")
    for column, value in enumerate(highs.getSolution().col_value):
        if value > 0.5:
            file.write(f"{column} {names[column]} {value} 0\n")
with open(answer + ".time", "w") as file:
    file.write(f"{seconds}\n")
