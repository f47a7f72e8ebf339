/// The program as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/commands/commands.hpp"
#include "core/formats/file.hpp"
#include "core/formats/pftrace.hpp"
#include "core/formats/plan.hpp"
#include "tests/cli/program_fixture.hpp"
#include "tests/golden.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class Program : public ProgramTest {
 protected:
  ProgramRun run(const std::string& arguments, const std::string& standard_input = "") const {
    ProgramCall call = call_of(words_of(arguments));
    call.standard_input = standard_input;
    return run_program(call);
  }
  /// The exit code of the program with the redirections of a shell.
  int shell(const std::string& arguments, const std::string& redirections) const {
    const std::string command = "cd " + folder_.path().string() + " && " MESHWRIGHT_PROGRAM " " +
                                arguments + " " + redirections;
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  const std::string job_ =
      " --model gpt2 --cluster dgx-a100 --gpus 16 --global-batch 64 --seq 1024 ";
};

TEST_F(Program, HelpOfEveryCommandHasTwoExamples) {
  for (const std::string command :
       {"plan", "simulate", "run", "compare", "calibrate", "fit", "explain", "report", "sweep",
        "partition", "schedule", "show", "export", "import", "doctor", "completion", "validate"}) {
    SCOPED_TRACE(command);
    const ProgramRun help = run(command + " --help");
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_EQ(help.standard_error, "");
    int examples = 0;
    for (std::size_t at = 0;
         (at = help.standard_output.find("\n  meshwright ", at)) != std::string::npos; ++at)
      ++examples;
    EXPECT_GE(examples, 2);
    expect_golden(help.standard_output, "help-" + command + ".txt");
  }
}

// `./dev run` calls it for the commands that it has.
TEST_F(Program, PlanningCommandsAreAProgramOfTheirOwn) {
  const std::string dev = read_file(MESHWRIGHT_SOURCE_DIR "/dev");
  const std::string_view key = "planning_commands='";
  const std::size_t begin = dev.find(key) + key.size();
  const std::vector<std::string> commands =
      words_of(dev.substr(begin, dev.find('\'', begin) - begin));
  ASSERT_EQ(commands.size(), std::size(kPlanningCommands) - 1) << "all but sweep";
  for (const std::string& command : commands)
    EXPECT_EQ(
        run_program({.program = MESHWRIGHT_PLANNING_PROGRAM, .arguments = {command, "--help"}})
            .standard_output,
        run(command + " --help").standard_output);
}

// 1F1B, 4 equal devices, F 1, I 1, W 1, 8 micro-batches: (m + p - 1) x 3 = 33.
TEST_F(Program, TimesANamedSchedule) {
  const ProgramRun timed = run(
      "schedule --name 1f1b --stages 4 --microbatches 8 --tf 1 --tb 1 --tw 1 --tcomm 0 --unit ms "
      "--json");
  EXPECT_EQ(timed.exit_code, 0);
  EXPECT_NE(timed.standard_output.find("\"makespan\": 33.0"), std::string::npos);
}

// With room for 2 p micro-batches only the first forwards to the last device are idle time: 8 x 3 +
// 3 = 27 (ZB-H2, arXiv 2401.10241).
TEST_F(Program, MakesAScheduleToMeasureAndProvesIt) {
  const ProgramRun made = run(
      "schedule --name auto --stages 4 --microbatches 8 --tf 1 --tb 1 --tw 1 --tcomm 0 --unit ms "
      "--cap 8");
  EXPECT_EQ(made.exit_code, 0);
  EXPECT_NE(made.standard_output.find("makespan  27 ms, bubble rate 11.11 %, proved optimal"),
            std::string::npos)
      << made.standard_output;
}

// The written CSV, with and without messages and in the older dialect, is the same schedule:
// checked and timed again it takes as long. Latencies differ by boundary.
TEST_F(Program, ChecksTheScheduleThatItWrote) {
  const std::string times = " --tf 1,2,1,1 --tb 1 --tw 0.5 --tcomm 0.1,0.5,0.2 --json ";
  for (const std::string form :
       {"", "--csv-content comms", "--csv-dialect old", "--csv-content comms --csv-dialect old"}) {
    SCOPED_TRACE(form);
    const ProgramRun made = run("schedule --name auto --stages 4 --microbatches 6 --cap 3 --csv " +
                                path("order.csv") + " " + form + times);
    ASSERT_EQ(made.exit_code, 0) << made.standard_error;
    const ProgramRun checked = run("schedule --check " + path("order.csv") + times + "--cap 3");
    ASSERT_EQ(checked.exit_code, 0) << checked.standard_error;
    const Json one = Json::parse(made.standard_output), two = Json::parse(checked.standard_output);
    for (const char* key : {"makespan", "period", "peak_activations", "orders"})
      EXPECT_EQ(one[key], two[key]) << key;
  }
}

TEST_F(Program, ChecksAScheduleThatEndsInBlankLines) {
  write_file(path("order.csv"), "0F0,0B0\n");
  write_file(path("blank.csv"), "0F0,0B0\n\n\n");
  write_file(path("empty.csv"), "");
  const ProgramRun expected = run("schedule --check order.csv --json");
  const ProgramRun blank = run("schedule --check blank.csv --json");
  ASSERT_EQ(blank.exit_code, 0) << blank.standard_error;
  EXPECT_EQ(Json::parse(blank.standard_output)["orders"],
            Json::parse(expected.standard_output)["orders"]);
  EXPECT_EQ(run("schedule --check empty.csv").exit_code, 3);
}

TEST_F(Program, ScheduleJsonHasTheKeysThatScriptsRelyOn) {
  const ProgramRun run_ =
      run("schedule --name pipedream --stages 3 --microbatches 6 --activation 2GiB --json");
  ASSERT_EQ(run_.exit_code, 0) << run_.standard_error;
  const Json json = Json::parse(run_.standard_output);
  for (const char* key : {"makespan", "period"})
    for (const char* figure : {"bubble", "lower_bound", "gap", "proved_optimal"})
      EXPECT_TRUE(json[figure].contains(key)) << figure << ' ' << key;
  EXPECT_EQ(json["weight_versions"], Json({3, 2, 1}));  // one per micro-batch in flight
  EXPECT_EQ(json["peak_activations"], Json({3.0, 2.0, 1.0}));
  EXPECT_EQ(json["peak_activation_bytes"][0], 3 * (std::int64_t{2} << 30));
}

TEST_F(Program, HelpListsTheCommands) { expect_golden(run("--help").standard_output, "help.txt"); }

TEST_F(Program, SaysItsVersion) {
  EXPECT_EQ(run("--version").standard_output, "meshwright " MESHWRIGHT_VERSION "\n");
}

TEST_F(Program, WrittenPlanSimulatesToThePredictedFigures) {
  ASSERT_EQ(run("plan" + job_ + "-o best.plan.json").exit_code, 0);
  const PlanFile plan = plan_file_from_json(read_file(path("best.plan.json")), "best.plan.json");
  ASSERT_TRUE(plan.predicted.has_value());
  const ProgramRun simulated = run("simulate best.plan.json --json");
  ASSERT_EQ(simulated.exit_code, 0);
  const Json json = Json::parse(simulated.standard_output);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["step_time_ns"], to_nanoseconds(plan.predicted->step_time));
  EXPECT_EQ(json["peak_memory_bytes"], plan.predicted->peak_memory.value);
  EXPECT_TRUE(json["timeline"].is_null());
}

TEST_F(Program, PlanJsonHasTheKeysThatScriptsRelyOn) {
  const ProgramRun planned = run("plan" + job_ + "--top 3 --json");
  ASSERT_EQ(planned.exit_code, 0);
  EXPECT_EQ(planned.standard_error, "");
  const Json json = Json::parse(planned.standard_output);
  EXPECT_EQ(json["schema"], 1);
  for (const char* key : {"candidates", "pruned", "simulated", "seconds", "proved_optimal", "gap"})
    EXPECT_TRUE(json["search"].contains(key)) << key;
  EXPECT_TRUE(json["infeasible"].is_null());
  ASSERT_EQ(json["plans"].size(), 3u);
  std::int64_t previous = 0;
  for (const Json& plan : json["plans"]) {
    for (const char* key :
         {"strategy", "step_time_ns", "period_ns", "tokens_per_s_per_gpu", "model_tflops_per_gpu",
          "mfu", "hfu", "bubble", "exposed_communication", "peak_memory_bytes",
          "memory_capacity_bytes", "peak_memory_bytes_per_stage", "why"})
      EXPECT_TRUE(plan.contains(key)) << key;
    EXPECT_GE(plan["step_time_ns"], previous) << "best first";
    previous = plan["step_time_ns"];
    EXPECT_LE(plan["peak_memory_bytes"], plan["memory_capacity_bytes"]);
    const Json& s = plan["strategy"];
    EXPECT_EQ(s["tp"].get<int>() * s["pp"].get<int>() * s["dp"].get<int>() * s["cp"].get<int>(),
              16);
  }
}

TEST_F(Program, FixedChoicesAreKept) {
  const ProgramRun planned =
      run("plan" + job_ + "--fix --tp 4 --pp 2 --micro-batch 2 --recompute full --json");
  ASSERT_EQ(planned.exit_code, 0) << planned.standard_error;
  const Json printed = Json::parse(planned.standard_output);
  for (const Json& plan : printed["plans"]) {
    EXPECT_EQ(plan["strategy"]["tp"], 4);
    EXPECT_EQ(plan["strategy"]["pp"], 2);
    EXPECT_EQ(plan["strategy"]["micro_batch"], 2);
    EXPECT_EQ(plan["strategy"]["recompute"], "full");
  }
}

TEST_F(Program, PlansDoNotDependOnTheNumberOfThreads) {
  Json one = Json::parse(run("plan" + job_ + "--json --threads 1").standard_output);
  Json four = Json::parse(run("plan" + job_ + "--json --threads 4").standard_output);
  EXPECT_EQ(one["plans"], four["plans"]);
}

// 1 T parameters need at least 2 bytes each for the weights: 2 TB, and 8 x 80 GiB are 0.69 TB.
TEST_F(Program, ExitsWithOneWhenNothingFits) {
  const ProgramRun planned =
      run("plan --model megatron-1t --cluster dgx-a100 --gpus 8 --global-batch 8 --seq 2048 --json "
          "-o best.plan.json");
  EXPECT_EQ(planned.exit_code, 1);
  const Json json = Json::parse(planned.standard_output);
  EXPECT_TRUE(json["plans"].empty());
  EXPECT_NE(json["infeasible"]["reason"], "");
  EXPECT_TRUE(folder_.file_names().empty()) << "a plan was written though none fits";
}

TEST_F(Program, SimulatedTimelineIsReadBackShownAndExported) {
  const ProgramRun simulated = run("simulate" + job_ + "--tp 2 --pp 4 -o step.pftrace --json");
  ASSERT_EQ(simulated.exit_code, 0) << simulated.standard_error;
  const Json json = Json::parse(simulated.standard_output);
  EXPECT_EQ(json["timeline"], "step.pftrace");
  const Timeline timeline = timeline_from_pftrace(read_file(path("step.pftrace")), "step.pftrace");
  EXPECT_EQ(to_nanoseconds(makespan(timeline)), json["step_time_ns"]);
  EXPECT_THAT(run("show step.pftrace").standard_output, HasSubstr("predicted timeline"));
  ASSERT_EQ(run("export step.pftrace --to chrome -o step.json").exit_code, 0);
  EXPECT_GT(Json::parse(read_file(path("step.json")))["traceEvents"].size(), timeline.spans.size());
  EXPECT_THAT(folder_.file_names(), testing::ElementsAre("step.json", "step.pftrace"));
}

TEST_F(Program, AllRanksTakeAsLongAsTheirRepresentatives) {
  const std::string job = "simulate" + job_ + "--tp 2 --pp 4 --sequence-parallel --json";
  const Json folded = Json::parse(run(job).standard_output);
  const Json unfolded = Json::parse(run(job + " --all-ranks").standard_output);
  EXPECT_EQ(folded["step_time_ns"], unfolded["step_time_ns"]);
  EXPECT_EQ(folded["peak_memory_bytes"], unfolded["peak_memory_bytes"]);
}

TEST_F(Program, ReadsAPlanFromStandardInputAndWritesOneToStandardOutput) {
  const ProgramRun planned = run("plan" + job_ + "-o -");
  ASSERT_EQ(planned.exit_code, 0);
  EXPECT_NO_THROW(plan_file_from_json(planned.standard_output, "standard output"));
  EXPECT_EQ(run("simulate - --json", planned.standard_output).exit_code, 0);
  EXPECT_TRUE(folder_.file_names().empty());
}

// The best plan of a program is that of a search restricted to it.
TEST_F(Program, ComparesTheBestPlansOfTrainingPrograms) {
  const Json open = Json::parse(run("plan" + job_ + "--json").standard_output);
  ASSERT_EQ(open["trainers"].size(), 3u);
  const double best = open["plans"][0]["step_time_ns"];
  for (const Json& trainer : open["trainers"]) {
    const std::string name = trainer["name"];
    const Json own = Json::parse(run("plan" + job_ + "--json --trainer " + name).standard_output);
    EXPECT_FALSE(own.contains("trainers")) << name;
    EXPECT_EQ(trainer["plan"]["step_time_ns"], own["plans"][0]["step_time_ns"]) << name;
    constexpr double kNanosecond = 1e-6;  // times are printed in whole ones
    EXPECT_NEAR(trainer["slower"].get<double>(),
                own["plans"][0]["step_time_ns"].get<double>() / best - 1, kNanosecond)
        << name;
  }
  const Json fixed = Json::parse(run("plan" + job_ + "--attention flash --json").standard_output);
  EXPECT_THAT(fixed["trainers"][2]["problem"].get<std::string>(), HasSubstr("flash attention"));
  EXPECT_TRUE(fixed["trainers"][2]["plan"].is_null());
}

// The first search takes all of its time. Programs that cannot run its plan get plans of their own.
TEST_F(Program, ComparesTrainingProgramsThoughTheTimeIsUp) {
  const Json json = Json::parse(run("plan --model llama-3.1-405b --cluster dgx-h100 --gpus 1024 "
                                    "--global-batch 2048 --seq 8192"
                                    " --time-limit 1 --threads 1 --json")
                                    .standard_output);
  ASSERT_GT(json["search"]["gap"].get<double>(), 0);
  for (const std::size_t trainer : {0, 1})
    EXPECT_TRUE(json["trainers"][trainer]["plan"].is_object())
        << json["trainers"][trainer]["name"] << ": " << json["trainers"][trainer]["problem"];
}

TEST_F(Program, LeavesTheMarginFree) {
  const auto most_memory = [&](const std::string& margin) {
    std::int64_t most = 0;
    const Json json = Json::parse(run("plan" + job_ + "--json " + margin).standard_output);
    for (const Json& plan : json["plans"])
      most = std::max(most, plan["peak_memory_bytes"].get<std::int64_t>());
    return most;
  };
  constexpr std::int64_t kCapacity = std::int64_t{80} << 30, kMargin = std::int64_t{76} << 30;
  EXPECT_GT(most_memory(""), kCapacity - kMargin);
  EXPECT_LE(most_memory("--margin 76GiB"), kCapacity - kMargin);
}

TEST_F(Program, SimulationForPeopleStaysAsItIs) {
  expect_golden(run("simulate" + job_ + "--tp 2 --pp 4 --zero 1").standard_output,
                "simulate-gpt2.txt");
}

TEST_F(Program, ExplainsEveryPipelineRankAndWhatWouldChange) {
  const ProgramRun explained = run("explain" + job_ + "--tp 2 --pp 4 --json");
  ASSERT_EQ(explained.exit_code, 0) << explained.standard_error;
  const Json json = Json::parse(explained.standard_output);
  EXPECT_EQ(json["ranks"].size(), 4u);
  EXPECT_GT(json["bubble"]["period"], json["bubble"]["busiest_rank_period"]);
  EXPECT_THAT(json["validation"].get<std::string>(),
              testing::ContainsRegex("validated on [0-9]+ similar published runs? \\("));
  std::set<std::string> changes;
  for (const Json& change : json["changes"]) changes.insert(change["change"]);
  EXPECT_TRUE(changes.contains("--micro-batch 2"));
  EXPECT_TRUE(changes.contains("--recompute full"));
  // tp 4 x pp 2 is another way to use the same devices.
  EXPECT_TRUE(changes.contains("--tp 4 --pp 2"));
}

// Today's launch, as a plan: the advice names sizes that its trainer can run.
TEST_F(Program, ImportsALaunchAndSaysWhatToChangeFirst) {
  write_file(path("train.sh"),
             "ARGS=(--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --swiglu\n"
             "  --num-attention-heads 32 --group-query-attention --num-query-groups 8\n"
             "  --normalization RMSNorm --disable-bias-linear --position-embedding-type rope\n"
             "  --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0\n"
             "  --vocab-size 128256 --padded-vocab-size 128256 --seq-length 4096 --bf16)\n"
             "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py \"${ARGS[@]}\" --lr 1e-4 \\\n"
             "  --tensor-model-parallel-size 8 --sequence-parallel --use-distributed-optimizer \\\n"
             "  --micro-batch-size 1 --global-batch-size 64\n");
  const ProgramRun imported = run("import train.sh --cluster dgx-h100 -o job.plan.json");
  ASSERT_EQ(imported.exit_code, 0) << imported.standard_error;
  EXPECT_THAT(imported.standard_error, HasSubstr("TP8 DP2 SP"));
  EXPECT_THAT(imported.standard_error, HasSubstr("ignored: --lr\n"));
  const ProgramRun explained = run("explain job.plan.json");
  ASSERT_EQ(explained.exit_code, 0) << explained.standard_error;
  EXPECT_THAT(explained.standard_output,
              testing::ContainsRegex("Change first: TP8 DP2 SP → .* faster, fits\n"));
}

// A100 were compared with published runs, MI300X were not.
TEST_F(Program, SaysUnvalidatedOnlyWhereItIsSo) {
  const std::string mi300x =
      " --model gpt2 --cluster mi300x-8 --gpus 16 --global-batch 64 --seq 1024 --tp 2 --pp 4";
  EXPECT_THAT(run("simulate" + mi300x).standard_output, HasSubstr("; unvalidated.\n"));
  EXPECT_THAT(run("explain" + mi300x).standard_output,
              testing::ContainsRegex("accuracy +unvalidated"));
  EXPECT_THAT(run("explain" + job_ + "--tp 2 --pp 4").standard_output,
              testing::ContainsRegex("accuracy +validated on [0-9]+ similar published run"));
  EXPECT_THAT(run("simulate" + job_ + "--tp 2 --pp 4").standard_output,
              testing::ContainsRegex(
                  "step time +[0-9.]+ m?s .*, likely [0-9.]+ m?s to [0-9.]+ m?s \\(p10"));
}

TEST_F(Program, SaysAPlanInAnotherTrainersWords) {
  const std::string split = "explain" + job_ + "--tp 2 --pp 4 --schedule zb-h1 --launch ";
  const ProgramRun flags = run(split + "megatron");
  ASSERT_EQ(flags.exit_code, 0) << flags.standard_error;
  EXPECT_THAT(flags.standard_output, HasSubstr("--tensor-model-parallel-size 2"));
  EXPECT_THAT(flags.standard_error,
              HasSubstr("not expressible in Megatron-LM core_v0.19.0: schedule zb"));
  // Nothing but the file itself, so that it can be given to the trainer.
  const Json file = Json::parse(run(split + "deepspeed").standard_output);
  EXPECT_EQ(file["train_batch_size"], 64);
  const Json json = Json::parse(run(split + "torchtitan --json").standard_output);
  EXPECT_THAT(json["text"], HasSubstr("pipeline_parallel_degree = 4"));
  EXPECT_FALSE(json["not_said"].empty());
  EXPECT_EQ(run(split + "megatrom").exit_code, 2);
  EXPECT_EQ(run(split + "auto").standard_output, flags.standard_output);
  EXPECT_EQ(Json::parse(run(split + "auto --trainer torchtitan --json").standard_output)["target"],
            "torchtitan v0.2.2");
}

TEST_F(Program, PlansForANamedTrainerAndSaysWhatTheDefaultOneCannotRun) {
  const std::string fixed = "plan" + job_ + "--pp 4 --zero 1 --top 3 ";
  const ProgramRun any = run(fixed);
  EXPECT_THAT(
      any.standard_output,
      testing::ContainsRegex("\nmegatron-core cannot run plans? [1-3].*: it has no schedule"));
  const ProgramRun named = run(fixed + "--trainer megatron-core");
  EXPECT_THAT(named.standard_output, testing::Not(HasSubstr("cannot run")));
  EXPECT_THAT(named.standard_output, HasSubstr(" by trainer; "));
  const Json open = Json::parse(run(fixed + "--json").standard_output);
  EXPECT_EQ(open["trainer"]["name"], "megatron-core");
  EXPECT_EQ(open["trainer"]["restricts_search"], false);
  EXPECT_EQ(open["search"]["pruned"]["trainer"], 0);
  EXPECT_EQ(open["plans"][0]["trainer_problems"][0]["where"], "--schedule");
  const Json restricted =
      Json::parse(run(fixed + "--trainer megatron-core --json").standard_output);
  EXPECT_EQ(restricted["trainer"]["restricts_search"], true);
  for (const Json& plan : restricted["plans"]) EXPECT_TRUE(plan["trainer_problems"].empty());
}

TEST_F(Program, NotesWhatTheTrainerOfAPlanCannotRun) {
  const std::string split = job_ + "--tp 2 --pp 4 --schedule zb-h1";
  const std::string note = "Note: megatron-core has no schedule 'zb-h1'; it has 1f1b and";
  for (const std::string command : {"simulate", "explain"}) {
    const ProgramRun text = run(command + split);
    EXPECT_EQ(text.exit_code, 0) << text.standard_error;
    EXPECT_THAT(text.standard_output, HasSubstr(note));
    EXPECT_EQ(
        Json::parse(run(command + split + " --json").standard_output)["trainer_problems"].size(),
        1u);
    EXPECT_THAT(run(command + split + " --trainer megatron-2023").standard_output,
                testing::Not(HasSubstr("Note: ")));
  }
}

TEST_F(Program, LeavesOutSweptPlansThatANamedTrainerCannotRun) {
  const std::string sweep = "sweep" + job_ + "--pp 4 --over schedule=1f1b,zb-h1 --json";
  EXPECT_TRUE(Json::parse(run(sweep).standard_output)["points"][1]["problems"].empty());
  const Json points =
      Json::parse(run(sweep + " --trainer megatron-core").standard_output)["points"];
  EXPECT_TRUE(points[0]["problems"].empty());
  EXPECT_THAT(points[1]["problems"][0]["what"], HasSubstr("has no schedule 'zb-h1'"));
}

TEST_F(Program, ListsShowEveryPresetAndEachCanBeShown) {
  for (const std::string kind : {"models", "clusters", "schedules"}) {
    const Json list = Json::parse(run("show " + kind + " --json").standard_output)[kind];
    EXPECT_GT(list.size(), 3u);
    for (const Json& entry : list) {
      const std::string name = entry["name"];
      const ProgramRun page = run("show " + name + " --json");
      EXPECT_EQ(page.exit_code, 0) << name << ": " << page.standard_error;
      EXPECT_EQ(Json::parse(page.standard_output)["name"], name);
    }
  }
}

TEST_F(Program, DoctorFindsThisInstallationSound) {
  const ProgramRun doctor = run("doctor --json");
  EXPECT_EQ(doctor.exit_code, 0) << doctor.standard_output;
  EXPECT_EQ(Json::parse(doctor.standard_output)["sound"], true);
  // Where a GPU is asked for, it must be there: `run` says the same.
  const ProgramRun with_gpu = run("doctor --device cuda --json");
  const bool has_none =
      Json::parse(with_gpu.standard_output)["gpus"].get<std::string>().starts_with("none");
  EXPECT_EQ(with_gpu.exit_code, has_none ? 4 : 0);
}

TEST_F(Program, FailsWhenStandardOutputCannotBeWritten) {
  const std::string command =
      std::string(MESHWRIGHT_PROGRAM) + " show models > /dev/full 2> " + path("error");
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 4);
  EXPECT_THAT(read_file(path("error")), HasSubstr("error: standard output: cannot write file: "));
}

// A message to a closed stream changes neither the result nor the exit code.
TEST_F(Program, ExitsAsUsualWhenStandardErrorIsClosedOrFull) {
  write_file(path("tiny.json"), R"({"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 1,
                                    "n_positions": 16, "vocab_size": 256})");
  for (const std::string stream : {"2>&-", "2>/dev/full"}) {
    SCOPED_TRACE(stream);
    EXPECT_EQ(shell("plan" + job_ + "-o best.plan.json", "> /dev/null " + stream), 0);
    EXPECT_EQ(shell("plan" + job_ + "--tp 8x", stream), 2);
    EXPECT_EQ(shell("simulate missing.plan.json --json", "> " + path("out") + " " + stream), 3);
    EXPECT_EQ(Json::parse(read_file(path("out")))["error"]["where"], "missing.plan.json");
    EXPECT_EQ(shell("show models", "> /dev/full " + stream), 4);
    EXPECT_EQ(shell("run --model tiny.json --cluster cpu-laptop --gpus 1 --dtype fp32 "
                    "--global-batch 1 --seq 8 --steps 1",
                    "> /dev/null " + stream),
              0);
  }
}

TEST_F(Program, FailsWhenStandardOutputIsClosed) {
  for (const std::string command : {"show models", "plan --help", "--version"}) {
    SCOPED_TRACE(command);
    for (const std::string stream : {">&-", "> /dev/full"}) {
      EXPECT_EQ(shell(command, stream + " 2> " + path("error")), 4);
      EXPECT_THAT(read_file(path("error")),
                  HasSubstr("error: standard output: cannot write file: "));
    }
  }
  // The first error decides.
  EXPECT_EQ(shell("plan --json --gpus many", ">&- 2> " + path("error")), 2);
  EXPECT_THAT(read_file(path("error")), HasSubstr("error: --gpus: invalid value 'many'"));
}

// One bucket is the whole model: its unreduced gradients exist twice.
TEST_F(Program, ExplainsWhyZero2NeedsMoreMemoryThanZero1) {
  const std::string job =
      "explain --model gpt2 --cluster dgx-h100 --gpus 128 --cp 4 --micro-batch 1 --global-batch 64 "
      "--seq 64 --recompute full --zero 2 --bucket ";
  EXPECT_THAT(run(job + "megatron").standard_output,
              HasSubstr("ZeRO 2 needs more memory than ZeRO 1 here (2.86 GiB against 2.38 GiB)"));
  EXPECT_THAT(run(job + "none").standard_output, Not(HasSubstr("ZeRO 2 needs more")));
}

// Standard output or error is a pipe whose reader has ended.
TEST_F(Program, EndsBySigpipeOnlyWhenItsResultsAreNotRead) {
  write_file(path("tiny.json"), R"({"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 1,
                                    "n_positions": 16, "vocab_size": 256})");
  const auto code_of = [&](const std::string& arguments, const std::string& streams) {
    const std::string command = "cd " + folder_.path().string() + " && { sleep 0.2; " +
                                MESHWRIGHT_PROGRAM + " " + arguments + " " + streams +
                                "; echo $? > code; } | true";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return read_file(path("code"));
  };
  EXPECT_EQ(code_of("show models", "2> error"), std::to_string(128 + SIGPIPE) + "\n");
  EXPECT_EQ(read_file(path("error")), "");
  EXPECT_EQ(code_of("run --model tiny.json --cluster cpu-laptop --gpus 1 --dtype fp32 "
                    "--global-batch 1 --seq 8 --steps 2",
                    "2>&1 > out"),
            "0\n");
  EXPECT_THAT(read_file(path("out")), HasSubstr("2 steps"));
}

// Otherwise the plan file would get descriptor 2, and messages would end up in it.
TEST_F(Program, WritesFilesIntactWhenTheStandardStreamsAreClosed) {
  ASSERT_EQ(shell("plan" + job_ + "-o best.plan.json", "> /dev/null"), 0);
  EXPECT_EQ(shell("simulate best.plan.json -o step.pftrace", "<&- >&- 2>&-"), 4);
  EXPECT_EQ(shell("show best.plan.json -o page.txt", "<&- >&- 2>&-"), 0);
  EXPECT_EQ(read_file(path("page.txt")), run("show best.plan.json").standard_output);
  EXPECT_EQ(shell("simulate - ", "<&- 2> " + path("error")), 3);
  EXPECT_THAT(read_file(path("error")), HasSubstr("error: standard input: cannot read file: "));
}

}  // namespace
}  // namespace meshwright
