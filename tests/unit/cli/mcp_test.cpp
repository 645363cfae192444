#include "mcp.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gpumem/job/job_options.hpp"
#include "gpumem/serve/server_command.hpp"

namespace gpumem::cli {
namespace {

using Json = nlohmann::json;

Json reply(McpServer& server, const Json& message) {
  const auto answer = server.answer(message.dump());
  return answer ? Json::parse(*answer) : Json();
}

Json request(const std::string& method, const Json& parameters = Json::object()) {
  return {{"jsonrpc", "2.0"}, {"id", 7}, {"method", method}, {"params", parameters}};
}

Json call(McpServer& server, const std::string& tool, const Json& arguments) {
  return reply(server, request("tools/call", {{"name", tool}, {"arguments", arguments}}));
}

const std::string kResnet50 = std::string(GPUMEM_SOURCE_DIR) + "/models/summaries/resnet50.torchsummary.txt";

TEST(Mcp, SaysWhoItIsAndIsSilentOnNotifications) {
  McpServer server;
  const Json said = reply(server, request("initialize", {{"protocolVersion", "2025-06-18"}}));
  EXPECT_EQ(said["id"], 7);
  EXPECT_EQ(said["result"]["serverInfo"]["name"], "gpumem");
  EXPECT_TRUE(said["result"]["capabilities"].contains("tools"));
  EXPECT_FALSE(server.answer(R"({"jsonrpc":"2.0","method":"notifications/initialized"})"));
}

TEST(Mcp, SchemasHaveEveryOptionOfAJob) {
  McpServer server;
  const Json tools = reply(server, request("tools/list"))["result"]["tools"];
  ASSERT_EQ(tools.size(), 6U);
  for (const Json& tool : tools) {
    const Json& properties = tool["inputSchema"]["properties"];
    EXPECT_EQ(properties["command"]["type"], "array") << tool["name"];
    if (tool["name"] == "serve") {
      for (const auto& option : serve::serving_options()) EXPECT_TRUE(properties.contains(option.name)) << option.name;
      continue;
    }
    EXPECT_TRUE(properties.contains("summary")) << tool["name"];
    for (const job::JobOption& option : job::job_options()) {
      const bool found_by_tool = option.name == "batch_size" && tool["name"] == "plan";
      EXPECT_EQ(properties.contains(option.name), !found_by_tool) << tool["name"] << " " << option.name;
    }
  }
}

TEST(Mcp, AnswersAsTheCommandLineDoes) {
  McpServer server;
  const Json job = {{"summary", kResnet50}, {"batch_size", 32}, {"gpu", "t4-16gb"}};
  const Json answer = call(server, "estimate", job)["result"];
  EXPECT_FALSE(answer["isError"]);
  EXPECT_GT(answer["structuredContent"]["estimates"][0]["expected_bytes"], 1'000'000'000);
  EXPECT_EQ(Json::parse(answer["content"][0]["text"].get<std::string>()), answer["structuredContent"]);
  const Json fit = call(server, "fit", {{"summary", kResnet50}, {"gpu", "t4-16gb"}})["result"]["structuredContent"];
  EXPECT_GT(fit["largest_batch"], 100);
  const Json found = call(server, "fit",
                          {{"summary", "flux.1-dev"},
                           {"batch_size", 2},
                           {"find", "image"},
                           {"image", "3x2"},
                           {"lora", 16},
                           {"precision", "bf16"},
                           {"gpu", "h100-80gb"}})["result"]["structuredContent"];
  EXPECT_GT(found["largest_image"][0], found["largest_image"][1]) << found;
  EXPECT_FALSE(call(server, "advise", job)["result"]["structuredContent"]["changes"].empty());
  EXPECT_FALSE(call(server, "gpus", job)["result"]["structuredContent"]["gpus"].empty());
}

TEST(Mcp, AWrongArgumentIsContentThatSaysHowToMendIt) {
  McpServer server;
  for (const auto& [arguments, part] : std::vector<std::pair<Json, std::string>>{
           {{{"summary", kResnet50}, {"batch_sise", 3}}, "did you mean 'batch_size'?"},
           {{{"summary", kResnet50}}, "batch"},
           {{{"summary", "-"}, {"batch_size", 3}}, "not standard input"},
           {{{"summary", "nowhere.txt"}, {"batch_size", 3}}, "cannot open"}}) {
    const Json result = call(server, "estimate", arguments)["result"];
    EXPECT_TRUE(result["isError"]) << arguments;
    EXPECT_NE(result["content"][0]["text"].get<std::string>().find(part), std::string::npos) << result;
  }
}

TEST(Mcp, StandardInputIsOfTheMessagesAlone) {
  McpServer server;
  const Json trainer = {"torchrun", "train.py", "--model_name_or_path", "-", "--per_device_train_batch_size", "1"};
  const Json drafted = {{"method", "draft_model"}, {"model", "-"}, {"num_speculative_tokens", 2}};
  for (const auto& [tool, arguments] : std::vector<std::pair<std::string, Json>>{
           {"estimate", {{"summary", "-"}, {"batch_size", 1}}},
           {"plan", {{"summary", "-"}, {"global_batch", 8}, {"gpus", 2}}},
           {"estimate", {{"command", trainer}}},
           {"fit", {{"command", trainer}}},
           {"advise", {{"command", trainer}}},
           {"gpus", {{"command", trainer}}},
           {"plan", {{"command", trainer}}},
           {"serve", {{"summary", "-"}, {"max_model_len", 512}}},
           {"serve", {{"command", {"vllm", "serve", "--model=-"}}}},
           {"serve", {{"summary", "Qwen/Qwen3-8B"}, {"speculative_config", drafted.dump()}}}}) {
    const Json result = call(server, tool, arguments)["result"];
    EXPECT_TRUE(result["isError"]) << arguments;
    EXPECT_NE(result.dump().find("not standard input"), std::string::npos) << arguments << result;
  }
}

TEST(Mcp, HoldsArgumentsToTheSchema) {
  McpServer server;
  const Json fit = call(server, "fit", {{"summary", kResnet50}, {"batch_size", 7}, {"find", "batch"}})["result"];
  EXPECT_TRUE(fit["isError"]);
  for (const Json& wrong :
       {Json{{"find", 3}}, Json{{"find", "photos"}}, Json{{"batch_size", "two"}}, Json{{"batch_size", -5}}}) {
    Json asked = {{"summary", kResnet50}};
    asked.update(wrong);
    EXPECT_TRUE(call(server, "fit", asked)["result"]["isError"]) << wrong;
  }
  const Json at_batch =
      call(server, "plan", {{"summary", kResnet50}, {"global_batch", 8}, {"batch_size", 7}})["result"];
  EXPECT_NE(at_batch.dump().find("is what this tool finds"), std::string::npos) << at_batch;
  const Json plan = call(server, "plan", {{"summary", kResnet50}, {"gpus", 8}})["result"];
  EXPECT_NE(plan["content"][0]["text"].get<std::string>().find("\"global_batch\" is required"), std::string::npos);
}

TEST(Mcp, APlanTakesAllThatTheCommandTakes) {
  McpServer server;
  Json asked = {{"summary", kResnet50}, {"global_batch", 64}, {"gpus", 2}, {"gpu", "t4-16gb"}};
  asked.update({{"framework", "fsdp2"}, {"network_gbps", 50.5}, {"explain", "data-parallel=2 batch=1"}});
  const Json plan = call(server, "plan", asked)["result"];
  EXPECT_FALSE(plan["isError"]) << plan;
  EXPECT_EQ(plan["structuredContent"]["layouts"][0]["framework"], "fsdp2");
  EXPECT_TRUE(plan["structuredContent"].contains("explained")) << plan;
  asked["explain"] = 3;
  EXPECT_TRUE(call(server, "plan", asked)["result"]["isError"]);
}

TEST(Mcp, TheCommandThatStartsAJobSaysWhatNoArgumentDoes) {
  McpServer server;
  const Json words = {"torchrun", "--nproc-per-node", "2", "train.py", "--per_device_train_batch_size", "4", "--bf16"};
  const auto answer = [&](const std::string& tool, const Json& more = Json::object()) {
    Json asked = {
        {"summary", "meta-llama/Llama-3.2-1B"}, {"seq_length", 512}, {"gpu", "h100-80gb"}, {"command", words}};
    asked.update(more);
    return call(server, tool, asked)["result"];
  };
  const Json estimate = answer("estimate");
  ASSERT_FALSE(estimate["isError"]) << estimate;
  EXPECT_EQ(estimate["structuredContent"]["job"]["batch_size"], 4) << estimate["structuredContent"]["job"];
  const std::string assumed = estimate["structuredContent"]["estimates"][0]["assumed"].dump();
  EXPECT_NE(assumed.find("from the command"), std::string::npos) << assumed;
  EXPECT_EQ(answer("estimate", {{"batch_size", 1}})["structuredContent"]["job"]["batch_size"], 1);
  EXPECT_FALSE(answer("fit")["isError"]);
  const Json none_fits = answer("fit", {{"gpu", "t4-16gb"}});
  EXPECT_TRUE(none_fits["isError"]) << none_fits;
  EXPECT_NE(none_fits.dump().find("from the command"), std::string::npos) << none_fits;
  const Json gpus = answer("gpus")["structuredContent"];
  EXPECT_NE(gpus["assumed"].dump().find("from the command: --batch 4"), std::string::npos) << gpus["assumed"];
  const Json plan = answer("plan", {{"gpus", 2}})["structuredContent"];
  EXPECT_EQ(plan["global_batch"], 8) << plan;
  const Json wrong = call(server, "estimate", {{"command", "torchrun train.py"}})["result"];
  EXPECT_NE(wrong["content"][0]["text"].get<std::string>().find("a list of words"), std::string::npos) << wrong;
}

TEST(Mcp, AnswersAboutServers) {
  McpServer server;
  const Json asked = {{"gpu", "h100-80gb"}, {"command", {"vllm", "serve", "Qwen/Qwen3-8B", "--max-model-len", "8192"}}};
  const Json result = call(server, "serve", asked)["result"];
  ASSERT_FALSE(result["isError"]) << result;
  const Json& content = result["structuredContent"];
  EXPECT_EQ(content["starts"], true);
  EXPECT_GT(content["kv_cache_tokens"], 8192);
  Json less = asked;
  less["gpu_memory_utilization"] = 0.5;
  EXPECT_LT(call(server, "serve", less)["result"]["structuredContent"]["kv_cache_tokens"], content["kv_cache_tokens"]);
  less["no_such_option"] = 1;
  EXPECT_TRUE(call(server, "serve", less)["result"]["isError"]);
  const Json elsewhere = call(server, "estimate", asked)["result"]["content"][0]["text"];
  EXPECT_NE(elsewhere.get<std::string>().find("gpumem serve"), std::string::npos) << elsewhere;
}

TEST(Mcp, RefusesWhatIsNoRequest) {
  McpServer server;
  const auto code = [&](const std::string& line) {
    return Json::parse(server.answer(line).value_or("{}")).value("/error/code"_json_pointer, 0);
  };
  EXPECT_EQ(code("nonsense"), -32700);
  EXPECT_EQ(code(std::string(100, '[')), -32700);
  EXPECT_EQ(code("[]"), -32600);
  EXPECT_EQ(code(R"({"id": 1})"), -32600);
  EXPECT_EQ(code(R"({"id": 1, "method": "resources/list"})"), -32601);
  EXPECT_EQ(code(R"({"id": 1, "method": "tools/call"})"), -32602);
  EXPECT_EQ(code(R"({"id": 1, "method": "tools/call", "params": {"name": "estimate", "arguments": 3}})"), -32602);
}

}  // namespace
}  // namespace gpumem::cli
