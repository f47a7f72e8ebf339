<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>Parts</name>
    <message>
        <source>matrix products</source>
        <translation>矩阵乘</translation>
    </message>
    <message>
        <source>attention</source>
        <translation>注意力</translation>
    </message>
    <message>
        <source>memory-bound kernels</source>
        <translation>访存受限算子</translation>
    </message>
    <message>
        <source>optimizer kernels</source>
        <translation>优化器算子</translation>
    </message>
    <message>
        <source>bubble: warm-up</source>
        <translation>气泡：预热</translation>
    </message>
    <message>
        <source>bubble: drain</source>
        <translation>气泡：排空</translation>
    </message>
    <message>
        <source>bubble: dependency</source>
        <translation>气泡：依赖等待</translation>
    </message>
    <message>
        <source>bubble: imbalance</source>
        <translation>气泡：负载不均衡</translation>
    </message>
    <message>
        <source>structure</source>
        <translation>结构</translation>
    </message>
    <message>
        <source>schedule</source>
        <translation>调度</translation>
    </message>
    <message>
        <source>memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>bound</source>
        <translation>下界</translation>
    </message>
    <message>
        <source>dominated</source>
        <translation>被支配</translation>
    </message>
    <message>
        <source>trainer</source>
        <translation>训练框架</translation>
    </message>
    <message>
        <source>expert matrix products</source>
        <translation>专家矩阵乘</translation>
    </message>
    <message>
        <source>exposed %1 communication</source>
        <translation>未掩盖的 %1 通信</translation>
    </message>
</context>
<context>
    <name>QObject</name>
    <message>
        <source>%1 vs A</source>
        <translation>%1（相对 A）</translation>
    </message>
    <message>
        <source>pt</source>
        <translation>个百分点</translation>
    </message>
    <message>
        <source>warm-up</source>
        <translation>预热</translation>
    </message>
    <message>
        <source>drain</source>
        <translation>排空</translation>
    </message>
    <message>
        <source>waiting for other stages</source>
        <translation>等待其他阶段</translation>
    </message>
    <message>
        <source>waiting for communication</source>
        <translation>等待通信</translation>
    </message>
    <message>
        <source>unknown</source>
        <translation>未知</translation>
    </message>
    <message>
        <source> of stage %1</source>
        <translation>，阶段 %1</translation>
    </message>
    <message>
        <source> on rank %1</source>
        <translation>，rank %1</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>类型</translation>
    </message>
    <message>
        <source>Slack</source>
        <translation>松弛时间</translation>
    </message>
    <message>
        <source>Critical path</source>
        <translation>关键路径</translation>
    </message>
    <message>
        <source>yes</source>
        <translation>是</translation>
    </message>
    <message>
        <source>no</source>
        <translation>否</translation>
    </message>
    <message>
        <source>before %1</source>
        <translation>位于 %1 之前</translation>
    </message>
    <message>
        <source>Slices</source>
        <translation>切片</translation>
    </message>
    <message>
        <source>Idle</source>
        <translation>空闲</translation>
    </message>
    <message>
        <source>recomputation</source>
        <translation>重计算</translation>
    </message>
    <message>
        <source>kernel launches</source>
        <translation>内核启动</translation>
    </message>
    <message>
        <source>optimizer</source>
        <translation>优化器</translation>
    </message>
    <message>
        <source>Plan</source>
        <translation>计划</translation>
    </message>
    <message>
        <source>Tasks</source>
        <translation>任务数</translation>
    </message>
    <message>
        <source>Layers per stage: %1</source>
        <translation>每阶段层数：%1</translation>
    </message>
    <message>
        <source>same as A</source>
        <translation>与 A 相同</translation>
    </message>
    <message>
        <source>timed out waiting for pending work</source>
        <translation>等待未完成的计算超时</translation>
    </message>
    <message>
        <source>cannot write file: %1</source>
        <translation>无法写入文件：%1</translation>
    </message>
    <message>
        <source>Start</source>
        <translation>开始</translation>
    </message>
    <message>
        <source>Duration</source>
        <translation>时长</translation>
    </message>
    <message>
        <source>Start time determined by</source>
        <translation>开始时刻取决于</translation>
    </message>
    <message>
        <source>Bubble: %1</source>
        <translation>气泡：%1</translation>
    </message>
    <message>
        <source>Waiting for</source>
        <translation>等待</translation>
    </message>
    <message numerus="yes">
        <source>%1 on %n row(s)</source>
        <translation>
            <numerusform>%n 行，每行 %1</numerusform>
        </translation>
    </message>
    <message>
        <source>Share of compute-stream time</source>
        <translation>占计算流时间的比例</translation>
    </message>
    <message>
        <source>Step time breakdown</source>
        <translation>单步时间构成</translation>
    </message>
    <message>
        <source>Step time</source>
        <translation>单步时间</translation>
    </message>
    <message>
        <source>Pipeline makespan</source>
        <translation>流水线总耗时</translation>
    </message>
    <message>
        <source>Expected measurement, p10 to p90</source>
        <translation>实测值预期范围（p10 至 p90）</translation>
    </message>
    <message>
        <source>%1 to %2</source>
        <translation>%1 至 %2</translation>
    </message>
    <message>
        <source>Period (steady-state step time)</source>
        <translation>周期（稳态单步时间）</translation>
    </message>
    <message>
        <source>Model FLOP/s per GPU</source>
        <translation>每 GPU 模型 FLOP/s</translation>
    </message>
    <message>
        <source>Cost model: %1; %2.</source>
        <translation>代价模型：%1；%2。</translation>
    </message>
    <message>
        <source>Bubble</source>
        <translation>气泡率</translation>
    </message>
    <message>
        <source>of the period, mean over ranks</source>
        <translation>占周期，各 rank 平均</translation>
    </message>
    <message>
        <source>of the period, busiest rank</source>
        <translation>占周期，最忙的 rank</translation>
    </message>
    <message>
        <source>of the pipeline makespan, mean over ranks</source>
        <translation>占流水线总耗时，各 rank 平均</translation>
    </message>
    <message>
        <source>of the step time, mean over ranks</source>
        <translation>占步时间，各 rank 平均</translation>
    </message>
</context>
<context>
    <name>SweepAxis</name>
    <message>
        <source>micro-batches m</source>
        <translation>微批次数 m</translation>
    </message>
    <message>
        <source>schedule</source>
        <translation>调度</translation>
    </message>
    <message>
        <source>recompute</source>
        <translation>重计算</translation>
    </message>
    <message>
        <source>pipeline-parallel size p</source>
        <translation>流水线并行度 p</translation>
    </message>
    <message>
        <source>model chunks v</source>
        <translation>模型块数 v</translation>
    </message>
    <message>
        <source>tensor-parallel size</source>
        <translation>张量并行度</translation>
    </message>
    <message>
        <source>data-parallel size</source>
        <translation>数据并行度</translation>
    </message>
    <message>
        <source>micro-batch size</source>
        <translation>微批次大小</translation>
    </message>
    <message>
        <source>ZeRO</source>
        <translation>ZeRO</translation>
    </message>
</context>
<context>
    <name>Timeline</name>
    <message>
        <source>warm-up</source>
        <translation>预热</translation>
    </message>
    <message>
        <source>drain</source>
        <translation>排空</translation>
    </message>
    <message>
        <source>dependency</source>
        <translation>依赖等待</translation>
    </message>
    <message>
        <source>communication</source>
        <translation>通信</translation>
    </message>
    <message>
        <source>idle</source>
        <translation>空闲</translation>
    </message>
    <message>
        <source>%1 of stage %2</source>
        <translation>阶段 %2 的 %1</translation>
    </message>
    <message>
        <source>%1 of rank %2</source>
        <translation>rank %2 的 %1</translation>
    </message>
    <message>
        <source>rank %1, %2</source>
        <translation>rank %1，%2</translation>
    </message>
    <message>
        <source>stage %1</source>
        <translation>阶段 %1</translation>
    </message>
    <message>
        <source>slack %1</source>
        <translation>松弛时间 %1</translation>
    </message>
    <message>
        <source>idle for %1</source>
        <translation>空闲 %1</translation>
    </message>
    <message>
        <source>%1 %2</source>
        <translation>%1 %2</translation>
    </message>
    <message>
        <source>%1 waits for %2</source>
        <translation>%1 等待 %2</translation>
    </message>
    <message>
        <source>message on rank %1 (%2)</source>
        <translation>rank %1 上的消息（%2）</translation>
    </message>
    <message>
        <source>%1 starting at %2</source>
        <translation>%1，始于 %2</translation>
    </message>
    <message>
        <source>over %1: %2</source>
        <translation>%1 内：%2</translation>
    </message>
    <message>
        <source>on the critical path</source>
        <translation>在关键路径上</translation>
    </message>
    <message>
        <source>no slack</source>
        <translation>无松弛时间</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::CalibrationScreen</name>
    <message>
        <source>, causal</source>
        <translation>，因果</translation>
    </message>
    <message>
        <source>Measured curves</source>
        <translation>实测曲线</translation>
    </message>
    <message>
        <source>Calibration</source>
        <translation>校准</translation>
    </message>
    <message>
        <source>Open…</source>
        <translation>打开…</translation>
    </message>
    <message>
        <source>Calibrations (*.json);;All files (*)</source>
        <translation>校准 (*.json);;所有文件 (*)</translation>
    </message>
    <message>
        <source>&amp;Stop</source>
        <translation>停止(&amp;S)</translation>
    </message>
    <message>
        <source>%1, %2 ranks</source>
        <translation>%1，%2 个 rank</translation>
    </message>
    <message>
        <source> on %1 nodes</source>
        <translation>，%1 个节点</translation>
    </message>
    <message numerus="yes">
        <source>%n outlier(s)</source>
        <translation>
            <numerusform>%n 个离群点</numerusform>
        </translation>
    </message>
    <message>
        <source>Calibrate this &amp;machine</source>
        <translation>校准本机(&amp;M)</translation>
    </message>
    <message>
        <source>&amp;Quick</source>
        <translation>快速(&amp;Q)</translation>
    </message>
    <message>
        <source>A&amp;pply to the scenario</source>
        <translation>应用于方案(&amp;P)</translation>
    </message>
    <message>
        <source>Hide &amp;outliers</source>
        <translation>隐藏离群点(&amp;O)</translation>
    </message>
    <message>
        <source>Hides points whose leave-one-out error is more than 1.5 × IQR outside the quartiles (Tukey)</source>
        <translation>隐藏留一法误差超出四分位数 1.5 倍四分位距以上的点（Tukey 准则）</translation>
    </message>
    <message>
        <source>No calibration loaded</source>
        <translation>尚未加载校准</translation>
    </message>
    <message>
        <source>This screen shows measured kernel and communication times with their fitted curves. Calibrate this machine, or open a calibration file: `meshwright calibrate` writes one (with `--device cuda` for a GPU), and `meshwright import` converts nccl-tests output.</source>
        <translation>此页显示实测的算子与通信时间及其拟合曲线。可以校准本机，也可以打开校准文件：`meshwright calibrate` 生成校准文件（GPU 上加 `--device cuda`），`meshwright import` 可转换 nccl-tests 的输出。</translation>
    </message>
    <message>
        <source>Calibration provenance</source>
        <translation>校准来源</translation>
    </message>
    <message>
        <source>Fewer shapes: about 20 seconds instead of two minutes</source>
        <translation>形状较少：约 20 秒，而非两分钟</translation>
    </message>
    <message>
        <source>Benchmarks kernels and messages on this machine (about two minutes)</source>
        <translation>在本机对算子和消息进行基准测试（约两分钟）</translation>
    </message>
    <message>
        <source>Stops the calibration and discards its results</source>
        <translation>停止校准并丢弃结果</translation>
    </message>
    <message>
        <source>Simulates the scenario with measured times instead of the analytic cost model</source>
        <translation>用实测时间代替解析代价模型来模拟方案</translation>
    </message>
    <message>
        <source>Calibration progress</source>
        <translation>校准进度</translation>
    </message>
    <message>
        <source>Calibrating…</source>
        <translation>正在校准…</translation>
    </message>
    <message>
        <source>Calibration finished.</source>
        <translation>校准完成。</translation>
    </message>
    <message>
        <source>Calibration failed: %1</source>
        <translation>校准失败：%1</translation>
    </message>
    <message>
        <source>Open calibration</source>
        <translation>打开校准文件</translation>
    </message>
    <message>
        <source>Benchmarks kernels and messages, then applies the results to the scenario</source>
        <translation>对算子和消息进行基准测试，并将结果应用于方案</translation>
    </message>
    <message>
        <source>Stop cal&amp;ibration</source>
        <translation>停止校准(&amp;I)</translation>
    </message>
    <message>
        <source>&amp;Use this calibration</source>
        <translation>使用此校准(&amp;U)</translation>
    </message>
    <message>
        <source>Simulates the scenario with the measured curves</source>
        <translation>用实测曲线模拟方案</translation>
    </message>
    <message>
        <source>&lt;p&gt;&lt;b&gt;%1&lt;/b&gt;, %2 cores, %3 memory&lt;br&gt;message: %4 + size / %5&lt;br&gt;memory bandwidth: %6&lt;/p&gt;</source>
        <translation>&lt;p&gt;&lt;b&gt;%1&lt;/b&gt;，%2 核，内存 %3&lt;br&gt;消息：%4 + 大小 / %5&lt;br&gt;内存带宽：%6&lt;/p&gt;</translation>
    </message>
    <message>
        <source>%1: %2 collective curves, %3 kernel families. Press Ctrl+Alt+P to apply them to the scenario.</source>
        <translation>%1：%2 条集合通信曲线，%3 个算子族。按 Ctrl+Alt+P 应用于方案。</translation>
    </message>
    <message>
        <source>Show curve</source>
        <translation>显示曲线</translation>
    </message>
    <message>
        <source>Use calibration %1</source>
        <translation>使用校准 %1</translation>
    </message>
    <message>
        <source>batch %1, %2 × %3 × %4: %5 (IQR %6 of the median, %7 samples)</source>
        <translation>批 %1，%2 × %3 × %4：%5（四分位距为中位数的 %6，%7 个样本）</translation>
    </message>
    <message>
        <source>FLOPs per call</source>
        <translation>单次调用 FLOPs</translation>
    </message>
    <message>
        <source>memory traffic per call</source>
        <translation>单次调用访存量</translation>
    </message>
    <message>
        <source>time per call</source>
        <translation>单次调用时间</translation>
    </message>
    <message>
        <source>leave-one-out prediction: %1</source>
        <translation>留一法预测：%1</translation>
    </message>
    <message>
        <source>○ leave-one-out prediction: error %1 (median), %2 (max)</source>
        <translation>○ 留一法预测：误差中位数 %1，最大 %2</translation>
    </message>
    <message>
        <source>total buffer size</source>
        <translation>缓冲区总大小</translation>
    </message>
    <message>
        <source>dashed line: α + S / β with α = %1, β = %2</source>
        <translation>虚线：α + S / β，其中 α = %1，β = %2</translation>
    </message>
    <message numerus="yes">
        <source>%n outlier(s) hidden</source>
        <translation>
            <numerusform>已隐藏 %n 个离群点</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>meshwright::gui::ChildProgram</name>
    <message>
        <source>Cannot start meshwright: %1</source>
        <translation>无法启动 meshwright：%1</translation>
    </message>
    <message>
        <source>Cannot find the program meshwright next to meshwright-gui or in PATH. Build or install it first.</source>
        <translation>在 meshwright-gui 所在目录和 PATH 中都找不到程序 meshwright。请先构建或安装。</translation>
    </message>
    <message>
        <source>The process crashed or was killed.</source>
        <translation>进程崩溃或被终止。</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::CommandPalette</name>
    <message>
        <source>Command</source>
        <translation>命令</translation>
    </message>
    <message>
        <source>Type a command</source>
        <translation>输入命令</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::CompareDialog</name>
    <message>
        <source>Compare two traces</source>
        <translation>比较两个 trace</translation>
    </message>
    <message>
        <source>&amp;Predicted (or earlier) trace</source>
        <translation>预测（或较早）的 trace(&amp;P)</translation>
    </message>
    <message>
        <source>&amp;Measured (or later) trace</source>
        <translation>实测（或较晚）的 trace(&amp;M)</translation>
    </message>
    <message>
        <source>&amp;Compare</source>
        <translation>比较(&amp;C)</translation>
    </message>
    <message>
        <source>Browse…</source>
        <translation>浏览…</translation>
    </message>
    <message>
        <source>Browse for: %1</source>
        <translation>浏览：%1</translation>
    </message>
    <message>
        <source>Traces (*.pftrace *.json *.json.gz);;All files (*)</source>
        <translation>Trace (*.pftrace *.json *.json.gz);;所有文件 (*)</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::CompareScreen</name>
    <message>
        <source>Align</source>
        <translation>对齐</translation>
    </message>
    <message>
        <source>first forward pass</source>
        <translation>首个前向</translation>
    </message>
    <message>
        <source>Compare &amp;two traces…</source>
        <translation>比较两个 trace…(&amp;T)</translation>
    </message>
    <message>
        <source>Traces (*.pftrace *.json *.json.gz);;All files (*)</source>
        <translation>Trace (*.pftrace *.json *.json.gz);;所有文件 (*)</translation>
    </message>
    <message>
        <source>Compare</source>
        <translation>比较</translation>
    </message>
    <message>
        <source>predicted</source>
        <translation>预测</translation>
    </message>
    <message>
        <source>measured</source>
        <translation>实测</translation>
    </message>
    <message>
        <source>Choose two traces…</source>
        <translation>选择两个 trace…</translation>
    </message>
    <message>
        <source>Re&amp;calibrate</source>
        <translation>重新校准(&amp;C)</translation>
    </message>
    <message>
        <source>predicte&amp;d</source>
        <translation>预测(&amp;D)</translation>
    </message>
    <message>
        <source>&amp;Morph predicted into measured</source>
        <translation>从预测渐变到实测(&amp;M)</translation>
    </message>
    <message>
        <source>Morph</source>
        <translation>渐变</translation>
    </message>
    <message>
        <source>Nothing to compare yet</source>
        <translation>尚无可比较的内容</translation>
    </message>
    <message>
        <source>step start</source>
        <translation>步开始</translation>
    </message>
    <message>
        <source>manual offset</source>
        <translation>手动偏移</translation>
    </message>
    <message>
        <source>The point at which the two timelines are aligned</source>
        <translation>两条时间线的对齐点</translation>
    </message>
    <message>
        <source>&amp;Align at</source>
        <translation>对齐于(&amp;A)</translation>
    </message>
    <message>
        <source>Offset added to the measured times</source>
        <translation>加到实测时间上的偏移</translation>
    </message>
    <message>
        <source>Moves the predicted slices to their measured positions</source>
        <translation>将预测的切片移到实测位置</translation>
    </message>
    <message>
        <source>Calibrates this machine, simulates the scenario with the result and compares again</source>
        <translation>校准本机，用结果重新模拟方案并再次比较</translation>
    </message>
    <message>
        <source>Opens a predicted and a measured trace</source>
        <translation>打开一个预测 trace 和一个实测 trace</translation>
    </message>
    <message>
        <source>Animates every slice from its predicted to its measured position, and back</source>
        <translation>以动画将每个切片从预测位置移到实测位置，再次执行则还原</translation>
    </message>
    <message>
        <source>Compare &amp;with current scenario</source>
        <translation>与当前方案比较(&amp;W)</translation>
    </message>
    <message>
        <source>Compares the measured trace with the scenario as it is now</source>
        <translation>将实测 trace 与当前方案比较</translation>
    </message>
    <message>
        <source>Recali&amp;brate and compare again</source>
        <translation>重新校准并再次比较(&amp;B)</translation>
    </message>
    <message>
        <source>Find task</source>
        <translation>查找任务</translation>
    </message>
    <message>
        <source>mean start-time difference: %1</source>
        <translation>开始时刻平均差：%1</translation>
    </message>
    <message>
        <source>Both timelines are shown, but their tasks could not be matched: %1</source>
        <translation>已显示两条时间线，但任务无法匹配：%1</translation>
    </message>
    <message>
        <source>Step time: predicted &lt;b&gt;%1&lt;/b&gt;, measured &lt;b&gt;%2&lt;/b&gt; (median of %3 steps, IQR %4), error &lt;b&gt;%5&lt;/b&gt; · %6 tasks matched</source>
        <translation>单步时间：预测 &lt;b&gt;%1&lt;/b&gt;，实测 &lt;b&gt;%2&lt;/b&gt;（%3 步的中位数，四分位距 %4），误差 &lt;b&gt;%5&lt;/b&gt; · 匹配 %6 个任务</translation>
    </message>
    <message>
        <source>previous error: %1</source>
        <translation>上次误差：%1</translation>
    </message>
    <message>
        <source>Inspector</source>
        <translation>检查器</translation>
    </message>
    <message>
        <source>Open a trace to look at it and compare it with the scenario, choose two traces with Run &gt; Compare two traces, or run the scenario on the Run screen.</source>
        <translation>打开一个 trace 查看并与方案比较，或用“运行 &gt; 比较两个 trace”选择两个 trace，或在“运行”界面运行方案。</translation>
    </message>
    <message>
        <source>Find bubble causes</source>
        <translation>查找气泡原因</translation>
    </message>
    <message>
        <source>Compare with &amp;scenario</source>
        <translation>与方案比较(&amp;S)</translation>
    </message>
    <message>
        <source>Compares this trace with the scenario as it is now</source>
        <translation>将此 trace 与当前方案比较</translation>
    </message>
    <message>
        <source>Compare &amp;with…</source>
        <translation>与…比较(&amp;W)</translation>
    </message>
    <message>
        <source>Compares this trace with another one</source>
        <translation>将此 trace 与另一个 trace 比较</translation>
    </message>
    <message>
        <source>Predicted (or earlier) trace</source>
        <translation>预测（或较早）的 trace</translation>
    </message>
    <message numerus="yes">
        <source>%1: %2 slices on %3 rows, %4 · %n step(s)</source>
        <translation>
            <numerusform>%1：%2 个切片，%3 行，%4 · %n 步</numerusform>
        </translation>
    </message>
    <message>
        <source>Measured step</source>
        <translation>实测步</translation>
    </message>
    <message>
        <source>The measured step that is compared</source>
        <translation>用于比较的实测步</translation>
    </message>
    <message>
        <source>step %1: %2 (median)</source>
        <translation>第 %1 步：%2（中位）</translation>
    </message>
    <message>
        <source>step %1: %2 (warm-up)</source>
        <translation>第 %1 步：%2（预热）</translation>
    </message>
    <message>
        <source>step %1: %2</source>
        <translation>第 %1 步：%2</translation>
    </message>
    <message>
        <source>Compare step</source>
        <translation>比较训练步</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::ComparisonReport</name>
    <message>
        <source>Errors</source>
        <translation>误差</translation>
    </message>
    <message>
        <source>Notes</source>
        <translation>备注</translation>
    </message>
    <message>
        <source>predicted</source>
        <translation>预测</translation>
    </message>
    <message>
        <source>measured</source>
        <translation>实测</translation>
    </message>
    <message>
        <source>error</source>
        <translation>误差</translation>
    </message>
    <message>
        <source>tasks</source>
        <translation>任务数</translation>
    </message>
    <message>
        <source>step</source>
        <translation>单步</translation>
    </message>
    <message>
        <source>kind</source>
        <translation>类型</translation>
    </message>
    <message>
        <source>stream</source>
        <translation>流</translation>
    </message>
    <message>
        <source>peak memory, rank %1</source>
        <translation>峰值显存，rank %1</translation>
    </message>
    <message>
        <source>Error attribution</source>
        <translation>误差归因</translation>
    </message>
    <message>
        <source>Largest errors</source>
        <translation>最大误差</translation>
    </message>
    <message>
        <source>Prediction errors</source>
        <translation>预测误差</translation>
    </message>
    <message>
        <source>quantity</source>
        <translation>指标</translation>
    </message>
    <message>
        <source>mean error per task</source>
        <translation>每任务平均误差</translation>
    </message>
    <message>
        <source>task durations</source>
        <translation>任务时长</translation>
    </message>
    <message>
        <source>waiting for communication</source>
        <translation>等待通信</translation>
    </message>
    <message>
        <source>other waiting</source>
        <translation>其他等待</translation>
    </message>
    <message>
        <source>&lt;p&gt;Tasks with the largest differences: predicted, measured&lt;/p&gt;</source>
        <translation>&lt;p&gt;差异最大的任务：预测值、实测值&lt;/p&gt;</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::ErrorDialog</name>
    <message>
        <source>Hint: %1</source>
        <translation>提示：%1</translation>
    </message>
    <message>
        <source>&amp;Copy text</source>
        <translation>复制文本(&amp;C)</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Invalid input</source>
        <translation>输入无效</translation>
    </message>
    <message>
        <source>System error</source>
        <translation>系统错误</translation>
    </message>
    <message>
        <source>Internal error. Please report it with the text below.</source>
        <translation>内部错误。请附上以下文字报告。</translation>
    </message>
    <message>
        <source>Error details</source>
        <translation>错误详情</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::ExploreScreen</name>
    <message>
        <source>Inspector</source>
        <translation>检查器</translation>
    </message>
    <message>
        <source>Simulating…</source>
        <translation>正在模拟…</translation>
    </message>
    <message>
        <source>only whole passes can be moved</source>
        <translation>只能移动完整的前向或反向</translation>
    </message>
    <message>
        <source>Open %1</source>
        <translation>打开 %1</translation>
    </message>
    <message>
        <source>&amp;Bubbles by cause</source>
        <translation>按原因标记气泡(&amp;B)</translation>
    </message>
    <message>
        <source>Co&amp;unters</source>
        <translation>计数曲线(&amp;U)</translation>
    </message>
    <message>
        <source>Pin as &amp;A</source>
        <translation>固定为 A(&amp;A)</translation>
    </message>
    <message>
        <source>S&amp;wap with A</source>
        <translation>与 A 交换(&amp;W)</translation>
    </message>
    <message>
        <source>&amp;Save plan…</source>
        <translation>保存计划…(&amp;S)</translation>
    </message>
    <message>
        <source>Copy ta&amp;ble</source>
        <translation>复制表格(&amp;B)</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>导出</translation>
    </message>
    <message>
        <source>Copy table</source>
        <translation>复制表格</translation>
    </message>
    <message>
        <source>Swap with A</source>
        <translation>与 A 交换</translation>
    </message>
    <message>
        <source>Save plan</source>
        <translation>保存计划</translation>
    </message>
    <message>
        <source>Plans (*.plan.json)</source>
        <translation>计划 (*.plan.json)</translation>
    </message>
    <message>
        <source>Save schedule</source>
        <translation>保存调度</translation>
    </message>
    <message>
        <source>PyTorch schedules (*.csv)</source>
        <translation>PyTorch 调度 (*.csv)</translation>
    </message>
    <message>
        <source>Explore</source>
        <translation>探索</translation>
    </message>
    <message>
        <source>equal stage times</source>
        <translation>各阶段耗时相等</translation>
    </message>
    <message>
        <source>free communication</source>
        <translation>通信不耗时</translation>
    </message>
    <message>
        <source>m ≥ p</source>
        <translation>m ≥ p</translation>
    </message>
    <message>
        <source>m divisible by p</source>
        <translation>m 可被 p 整除</translation>
    </message>
    <message>
        <source>equal F, B and W times</source>
        <translation>F、B、W 耗时相等</translation>
    </message>
    <message>
        <source>Slow down pipeline rank %1 ×%2</source>
        <translation>流水线 rank %1 减速 ×%2</translation>
    </message>
    <message>
        <source>Bubble: simulated &lt;b&gt;%1&lt;/b&gt; · no closed-form formula for %2</source>
        <translation>气泡率：模拟值 &lt;b&gt;%1&lt;/b&gt; · %2 没有闭式公式</translation>
    </message>
    <message>
        <source>all assumptions of the formula hold</source>
        <translation>公式的所有假设均成立</translation>
    </message>
    <message>
        <source>assumptions that do not hold: %1</source>
        <translation>不成立的假设：%1</translation>
    </message>
    <message>
        <source>Bubble: formula %1 = %2 = &lt;b&gt;%3&lt;/b&gt; · simulated &lt;b&gt;%4&lt;/b&gt; · %5</source>
        <translation>气泡率：公式 %1 = %2 = &lt;b&gt;%3&lt;/b&gt; · 模拟值 &lt;b&gt;%4&lt;/b&gt; · %5</translation>
    </message>
    <message>
        <source>no timeline yet</source>
        <translation>尚无时间线</translation>
    </message>
    <message>
        <source>Cannot move the pass: %1</source>
        <translation>无法移动：%1</translation>
    </message>
    <message>
        <source>Move pass</source>
        <translation>移动前向或反向</translation>
    </message>
    <message>
        <source>Message &amp;arrows</source>
        <translation>消息箭头(&amp;A)</translation>
    </message>
    <message>
        <source>Draws arrows from the sends to the receives of the selection</source>
        <translation>为选区绘制从发送到接收的箭头</translation>
    </message>
    <message>
        <source>Hatches idle time by its cause</source>
        <translation>按原因为空闲时间加阴影</translation>
    </message>
    <message>
        <source>Shows memory, in-flight micro-batches and stream activity below the rows (initially memory only, if there is room)</source>
        <translation>在各行下方显示显存、在途微批次和流的活动（起初若空间足够则只显示显存）</translation>
    </message>
    <message>
        <source>Color by &amp;micro-batch</source>
        <translation>按微批次着色(&amp;M)</translation>
    </message>
    <message>
        <source>Colors slices by micro-batch instead of by kind</source>
        <translation>按微批次而非类型为切片着色</translation>
    </message>
    <message>
        <source>S&amp;lice table</source>
        <translation>切片表(&amp;L)</translation>
    </message>
    <message>
        <source>Lists the visible slices in a table</source>
        <translation>以表格列出可见的切片</translation>
    </message>
    <message>
        <source>Pins this scenario and outlines it in later timelines; run again to unpin</source>
        <translation>固定此方案，并在之后的时间线中显示其轮廓；再次执行则取消固定</translation>
    </message>
    <message>
        <source>Restores the pinned scenario and pins the current one</source>
        <translation>恢复固定的方案，并固定当前方案</translation>
    </message>
    <message>
        <source>Searches for an order of passes for these stage times, messages and memory limits</source>
        <translation>针对当前的阶段耗时、消息和显存限制搜索前向与反向的执行顺序</translation>
    </message>
    <message>
        <source>&amp;Copy as command line</source>
        <translation>复制为命令行(&amp;C)</translation>
    </message>
    <message>
        <source>Copies the scenario as a meshwright simulate command</source>
        <translation>将方案复制为 meshwright simulate 命令</translation>
    </message>
    <message>
        <source>Loads the scenario from a copied command line</source>
        <translation>从复制的命令行加载方案</translation>
    </message>
    <message>
        <source>Saves a .plan.json file that all meshwright commands accept</source>
        <translation>保存为所有 meshwright 命令都能读取的 .plan.json 文件</translation>
    </message>
    <message>
        <source>Saves the schedule in PyTorch&apos;s CSV format</source>
        <translation>以 PyTorch 的 CSV 格式保存调度</translation>
    </message>
    <message>
        <source>&amp;Export view…</source>
        <translation>导出视图…(&amp;E)</translation>
    </message>
    <message>
        <source>Exports the visible range as PNG, SVG, PDF, CSV or .pftrace</source>
        <translation>将可见范围导出为 PNG、SVG、PDF、CSV 或 .pftrace</translation>
    </message>
    <message>
        <source>Copy &amp;image</source>
        <translation>复制图像(&amp;I)</translation>
    </message>
    <message>
        <source>Copies the visible range as an image</source>
        <translation>将可见范围复制为图像</translation>
    </message>
    <message>
        <source>Copies the statistics of the selected area, or the visible slices, for a spreadsheet</source>
        <translation>复制所选区域的统计（未选择时为可见切片），供电子表格使用</translation>
    </message>
    <message>
        <source>Copy statistics as Mar&amp;kdown</source>
        <translation>以 Markdown 复制统计(&amp;K)</translation>
    </message>
    <message>
        <source>Copies the time breakdown of the selected area, or of the visible range</source>
        <translation>复制所选区域（未选择时为可见范围）的时间构成</translation>
    </message>
    <message>
        <source>Copy statistics as &amp;JSON</source>
        <translation>以 JSON 复制统计(&amp;J)</translation>
    </message>
    <message>
        <source>Synthesize schedule</source>
        <translation>合成调度</translation>
    </message>
    <message>
        <source>Saved %1</source>
        <translation>已保存 %1</translation>
    </message>
    <message>
        <source>Export view</source>
        <translation>导出视图</translation>
    </message>
    <message>
        <source>Copy image</source>
        <translation>复制图像</translation>
    </message>
    <message>
        <source>Copied the scenario as a command line</source>
        <translation>已将方案复制为命令行</translation>
    </message>
    <message>
        <source>Paste command line</source>
        <translation>粘贴命令行</translation>
    </message>
    <message>
        <source>S&amp;ynthesize schedule</source>
        <translation>合成调度(&amp;Y)</translation>
    </message>
    <message>
        <source>Pas&amp;te command line</source>
        <translation>粘贴命令行(&amp;T)</translation>
    </message>
    <message>
        <source>Save sc&amp;hedule…</source>
        <translation>保存调度…(&amp;H)</translation>
    </message>
    <message>
        <source>m ≥ 2 p − 2</source>
        <translation>m ≥ 2 p − 2</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::GraphMap</name>
    <message>
        <source>Operators, colored by stage</source>
        <translation>算子（按阶段着色）</translation>
    </message>
    <message numerus="yes">
        <source>%1: stage %2, %n operator(s)</source>
        <translation>
            <numerusform>%1：阶段 %2，%n 个算子</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>meshwright::gui::GraphScreen</name>
    <message>
        <source>Graph</source>
        <translation>计算图</translation>
    </message>
    <message>
        <source>No graph yet</source>
        <translation>尚无计算图</translation>
    </message>
    <message>
        <source>Plans any model that is an ONNX file: stages, replicas, tensor parallelism and ZeRO, with the step of every plan simulated. PyTorch models are exported by torch.onnx or python -m meshwright.export_graph.</source>
        <translation>为任意 ONNX 模型制定计划：阶段、副本、张量并行与 ZeRO，并模拟每个计划的单步。PyTorch 模型可用 torch.onnx 或 python -m meshwright.export_graph 导出。</translation>
    </message>
    <message>
        <source>Open ONNX file…</source>
        <translation>打开 ONNX 文件…</translation>
    </message>
    <message>
        <source>Plans, fastest first</source>
        <translation>计划（最快在前）</translation>
    </message>
    <message>
        <source>Operators of the chosen box</source>
        <translation>所选方框中的算子</translation>
    </message>
    <message>
        <source>node</source>
        <translation>节点</translation>
    </message>
    <message>
        <source>operator</source>
        <translation>算子</translation>
    </message>
    <message>
        <source>FLOP</source>
        <translation>FLOP</translation>
    </message>
    <message>
        <source>output</source>
        <translation>输出</translation>
    </message>
    <message>
        <source>Choose a plan</source>
        <translation>请选择计划</translation>
    </message>
    <message>
        <source>&amp;Open…</source>
        <translation>打开(&amp;O)…</translation>
    </message>
    <message>
        <source>Opens an ONNX file</source>
        <translation>打开 ONNX 文件</translation>
    </message>
    <message>
        <source>all</source>
        <translation>全部</translation>
    </message>
    <message>
        <source>C&amp;luster</source>
        <translation>集群(&amp;L)</translation>
    </message>
    <message>
        <source>Cluster to train on</source>
        <translation>用于训练的集群</translation>
    </message>
    <message>
        <source>Number of GPUs</source>
        <translation>GPU 数量</translation>
    </message>
    <message>
        <source>Global &amp;batch</source>
        <translation>全局批次(&amp;B)</translation>
    </message>
    <message>
        <source>Samples per training step</source>
        <translation>每个训练步的样本数</translation>
    </message>
    <message>
        <source>&amp;Micro-batch</source>
        <translation>微批次(&amp;M)</translation>
    </message>
    <message>
        <source>Samples per micro-batch; all: powers of two, for graphs with a dimension named batch</source>
        <translation>每个微批次的样本数；全部：2 的幂，适用于带有名为 batch 的维度的计算图</translation>
    </message>
    <message>
        <source>Tensor-parallel degree</source>
        <translation>张量并行度</translation>
    </message>
    <message>
        <source>Finds the fastest plans for this graph on these GPUs</source>
        <translation>在这些 GPU 上为此计算图查找最快的计划</translation>
    </message>
    <message>
        <source>Plan &amp;graph of operators</source>
        <translation>为计算图制定计划(&amp;G)</translation>
    </message>
    <message>
        <source>Finds the fastest plans for the opened ONNX file</source>
        <translation>为已打开的 ONNX 文件查找最快的计划</translation>
    </message>
    <message>
        <source>Enlarge operators</source>
        <translation>放大算子</translation>
    </message>
    <message>
        <source>Shrink operators</source>
        <translation>缩小算子</translation>
    </message>
    <message>
        <source>Graph of operators</source>
        <translation>计算图</translation>
    </message>
    <message>
        <source>ONNX files (*.onnx)</source>
        <translation>ONNX 文件 (*.onnx)</translation>
    </message>
    <message>
        <source>Planning %1…</source>
        <translation>正在为 %1 制定计划…</translation>
    </message>
    <message>
        <source>Plan graph</source>
        <translation>计算图计划</translation>
    </message>
    <message>
        <source>Canceled</source>
        <translation>已取消</translation>
    </message>
    <message>
        <source>No plan fits: use more GPUs or a smaller micro-batch</source>
        <translation>没有可行的计划：请使用更多 GPU 或更小的微批次</translation>
    </message>
    <message>
        <source>%1 plans simulated; step: 1F1B with a flush. Cost model: %2</source>
        <translation>已模拟 %1 个计划；单步：1F1B，末尾排空。成本模型：%2</translation>
    </message>
    <message>
        <source>step</source>
        <translation>单步时间</translation>
    </message>
    <message>
        <source>samples/s</source>
        <translation>样本/秒</translation>
    </message>
    <message>
        <source>micro-batch</source>
        <translation>微批次</translation>
    </message>
    <message>
        <source>stages</source>
        <translation>阶段数</translation>
    </message>
    <message>
        <source>replicas</source>
        <translation>副本数</translation>
    </message>
    <message>
        <source>bubble</source>
        <translation>气泡率</translation>
    </message>
    <message>
        <source>peak memory</source>
        <translation>峰值显存</translation>
    </message>
    <message>
        <source>Draw graph</source>
        <translation>绘制计算图</translation>
    </message>
    <message>
        <source>&amp;Plan</source>
        <translation>制定计划(&amp;P)</translation>
    </message>
    <message>
        <source>&amp;Cancel</source>
        <translation>取消(&amp;C)</translation>
    </message>
    <message>
        <source>Cancels the search and keeps the previous results</source>
        <translation>取消搜索，保留之前的结果</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::HandOver</name>
    <message>
        <source>&amp;For</source>
        <translation>用于(&amp;F)</translation>
    </message>
    <message>
        <source>C&amp;opy</source>
        <translation>复制(&amp;O)</translation>
    </message>
    <message>
        <source>Training framework</source>
        <translation>训练框架</translation>
    </message>
    <message>
        <source>Training framework and version to launch this plan with</source>
        <translation>用于启动此计划的训练框架及版本</translation>
    </message>
    <message>
        <source>Copies the text below to the clipboard</source>
        <translation>将下方文本复制到剪贴板</translation>
    </message>
    <message>
        <source>Launch command</source>
        <translation>启动命令</translation>
    </message>
    <message>
        <source># simulate this plan
%1

# run it on this machine, if it is small enough
%2</source>
        <translation># 模拟此计划
%1

# 若规模足够小，可在本机运行
%2</translation>
    </message>
    <message>
        <source>Not supported by this framework:</source>
        <translation>此框架不支持：</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::HeatMap</name>
    <message>
        <source>Heat map</source>
        <translation>热力图</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::JobList</name>
    <message>
        <source>Job</source>
        <translation>后台任务</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>进度</translation>
    </message>
    <message>
        <source>Jobs</source>
        <translation>后台任务</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Cancel %1</source>
        <translation>取消 %1</translation>
    </message>
    <message>
        <source>Cancels this job</source>
        <translation>取消此任务</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::JobProgress</name>
    <message>
        <source>Progress</source>
        <translation>进度</translation>
    </message>
    <message>
        <source>%1 and %2 more</source>
        <translation>%1，另有 %2 项</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::KeySheet</name>
    <message>
        <source> or </source>
        <translation> 或 </translation>
    </message>
    <message>
        <source>File</source>
        <translation>文件</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>编辑</translation>
    </message>
    <message>
        <source>View</source>
        <translation>视图</translation>
    </message>
    <message>
        <source>Go</source>
        <translation>转到</translation>
    </message>
    <message>
        <source>Plan</source>
        <translation>规划</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>运行</translation>
    </message>
    <message>
        <source>Tools</source>
        <translation>工具</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>帮助</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>键盘快捷键</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::KpiStrip</name>
    <message>
        <source>MFU</source>
        <translation>MFU</translation>
    </message>
    <message>
        <source>Peak memory</source>
        <translation>峰值显存</translation>
    </message>
    <message>
        <source>Tokens/s per GPU</source>
        <translation>每 GPU token/s</translation>
    </message>
    <message>
        <source>Lower bound</source>
        <translation>下界</translation>
    </message>
    <message>
        <source>busiest rank %1</source>
        <translation>最忙的 rank：%1</translation>
    </message>
    <message>
        <source>HFU %1</source>
        <translation>HFU %1</translation>
    </message>
    <message>
        <source>of %1</source>
        <translation>容量 %1</translation>
    </message>
    <message>
        <source>gap %1</source>
        <translation>差距 %1</translation>
    </message>
    <message>
        <source>Step time</source>
        <translation>单步时间</translation>
    </message>
    <message>
        <source>Time of one training step, from the first task start to the last task end</source>
        <translation>一个训练步的时间，从首个任务开始到最后一个任务结束</translation>
    </message>
    <message>
        <source>Model FLOPs utilization: model FLOP/s over the device&apos;s peak FLOP/s</source>
        <translation>模型算力利用率：模型 FLOP/s 与设备峰值 FLOP/s 之比</translation>
    </message>
    <message>
        <source>Peak memory of the fullest device, and its capacity</source>
        <translation>显存占用最高的设备的峰值及其容量</translation>
    </message>
    <message>
        <source>Tokens per step divided by step time and number of devices</source>
        <translation>每步 token 数除以单步时间与设备数</translation>
    </message>
    <message>
        <source>Lower bound on the pipeline makespan for any order of these passes, and the gap to it</source>
        <translation>相同前向与反向在任意顺序下流水线总耗时的下界，以及与下界的差距</translation>
    </message>
    <message>
        <source>⚠ %1 over capacity</source>
        <translation>⚠ 超出容量 %1</translation>
    </message>
    <message>
        <source>not available</source>
        <translation>不可用</translation>
    </message>
    <message>
        <source>Bubble</source>
        <translation>气泡率</translation>
    </message>
    <message>
        <source>Bubble fraction of the period, the steady-state time between steps; mean over ranks, and below that of the rank with the smallest bubble</source>
        <translation>气泡占周期（稳态步间时间）的比例：各 rank 平均，下方为气泡最小的 rank</translation>
    </message>
    <message>
        <source>times set by hand</source>
        <translation>手动设定的时间</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::LectureScreen</name>
    <message>
        <source>Lecture</source>
        <translation>讲解</translation>
    </message>
    <message>
        <source>Schedule %1 of the scenario</source>
        <translation>方案的调度 %1</translation>
    </message>
    <message>
        <source>Plays all schedules at once (Space); ← and → move the head</source>
        <translation>同时播放所有调度（空格）；← 和 → 移动播放头</translation>
    </message>
    <message>
        <source>&amp;Play schedules</source>
        <translation>播放调度(&amp;P)</translation>
    </message>
    <message>
        <source>Plays the schedules of the Lecture screen from their start, or stops</source>
        <translation>从头播放“讲解”界面的调度，或停止</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>Simulate schedules</source>
        <translation>模拟调度</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>暂停</translation>
    </message>
    <message>
        <source>Play</source>
        <translation>播放</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::LegendStrip</name>
    <message>
        <source>F forward</source>
        <translation>F 前向</translation>
    </message>
    <message>
        <source>B backward</source>
        <translation>B 反向</translation>
    </message>
    <message>
        <source>I input gradient</source>
        <translation>I 输入梯度</translation>
    </message>
    <message>
        <source>W weight gradient</source>
        <translation>W 权重梯度</translation>
    </message>
    <message>
        <source>optimizer</source>
        <translation>优化器</translation>
    </message>
    <message>
        <source>collective</source>
        <translation>集合通信</translation>
    </message>
    <message>
        <source>send</source>
        <translation>发送</translation>
    </message>
    <message>
        <source>receive</source>
        <translation>接收</translation>
    </message>
    <message>
        <source>recomputation</source>
        <translation>重计算</translation>
    </message>
    <message>
        <source>copy</source>
        <translation>拷贝</translation>
    </message>
    <message>
        <source>host</source>
        <translation>主机</translation>
    </message>
    <message>
        <source>Legend</source>
        <translation>图例</translation>
    </message>
    <message>
        <source>other kernel</source>
        <translation>其他 kernel</translation>
    </message>
    <message>
        <source>matmul</source>
        <translation>矩阵乘</translation>
    </message>
    <message>
        <source>attention</source>
        <translation>注意力</translation>
    </message>
    <message>
        <source>normalization</source>
        <translation>归一化</translation>
    </message>
    <message>
        <source>elementwise</source>
        <translation>逐元素</translation>
    </message>
    <message>
        <source>warm-up</source>
        <translation>预热</translation>
    </message>
    <message>
        <source>drain</source>
        <translation>排空</translation>
    </message>
    <message>
        <source>dependency</source>
        <translation>依赖等待</translation>
    </message>
    <message>
        <source>communication</source>
        <translation>通信</translation>
    </message>
    <message>
        <source>other idle time</source>
        <translation>其他空闲</translation>
    </message>
    <message>
        <source>micro-batch 0</source>
        <translation>微批次 0</translation>
    </message>
    <message>
        <source>later model chunk</source>
        <translation>后续模型块</translation>
    </message>
    <message>
        <source>bubble: %1</source>
        <translation>气泡：%1</translation>
    </message>
    <message>
        <source>memory: %1</source>
        <translation>显存：%1</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::LogList</name>
    <message>
        <source>Log</source>
        <translation>日志</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::LossChart</name>
    <message>
        <source>step %1: %2</source>
        <translation>步 %1：%2</translation>
    </message>
    <message>
        <source>step</source>
        <translation>步</translation>
    </message>
    <message>
        <source>loss</source>
        <translation>损失</translation>
    </message>
    <message>
        <source>Loss per step</source>
        <translation>每步损失</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::MainWindow</name>
    <message>
        <source>Screens</source>
        <translation>界面</translation>
    </message>
    <message>
        <source>Scenario</source>
        <translation>方案</translation>
    </message>
    <message>
        <source>Inspector</source>
        <translation>检查器</translation>
    </message>
    <message>
        <source>Problems</source>
        <translation>问题</translation>
    </message>
    <message>
        <source>Log</source>
        <translation>日志</translation>
    </message>
    <message>
        <source>Jobs</source>
        <translation>后台任务</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>退出(&amp;Q)</translation>
    </message>
    <message>
        <source>&amp;Open…</source>
        <translation>打开…(&amp;O)</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>打开</translation>
    </message>
    <message>
        <source>&amp;Undo</source>
        <translation>撤销(&amp;U)</translation>
    </message>
    <message>
        <source>&amp;Redo</source>
        <translation>重做(&amp;R)</translation>
    </message>
    <message>
        <source>&amp;Undo %1</source>
        <translation>撤销 %1(&amp;U)</translation>
    </message>
    <message>
        <source>&amp;Redo %1</source>
        <translation>重做 %1(&amp;R)</translation>
    </message>
    <message>
        <source>&amp;Next schedule</source>
        <translation>下一个调度(&amp;N)</translation>
    </message>
    <message>
        <source>&amp;Previous schedule</source>
        <translation>上一个调度(&amp;P)</translation>
    </message>
    <message>
        <source>Pre&amp;ferences…</source>
        <translation>首选项…(&amp;F)</translation>
    </message>
    <message>
        <source>Next t&amp;heme</source>
        <translation>切换主题(&amp;H)</translation>
    </message>
    <message>
        <source>&amp;Command palette…</source>
        <translation>命令面板…(&amp;C)</translation>
    </message>
    <message>
        <source>&amp;File</source>
        <translation>文件(&amp;F)</translation>
    </message>
    <message>
        <source>&amp;Edit</source>
        <translation>编辑(&amp;E)</translation>
    </message>
    <message>
        <source>&amp;View</source>
        <translation>视图(&amp;V)</translation>
    </message>
    <message>
        <source>&amp;Go</source>
        <translation>转到(&amp;G)</translation>
    </message>
    <message>
        <source>&amp;Plan</source>
        <translation>规划(&amp;P)</translation>
    </message>
    <message>
        <source>&amp;Run</source>
        <translation>运行(&amp;R)</translation>
    </message>
    <message>
        <source>&amp;Tools</source>
        <translation>工具(&amp;T)</translation>
    </message>
    <message>
        <source>&amp;Help</source>
        <translation>帮助(&amp;H)</translation>
    </message>
    <message>
        <source>Problems (%1)</source>
        <translation>问题 (%1)</translation>
    </message>
    <message>
        <source>%1 on %2 · %3 tasks</source>
        <translation>%1，集群 %2 · %3 个任务</translation>
    </message>
    <message numerus="yes">
        <source>⚠ %n problem(s)</source>
        <translation>
            <numerusform>⚠ %n 个问题</numerusform>
        </translation>
    </message>
    <message>
        <source>Opened %1</source>
        <translation>已打开 %1</translation>
    </message>
    <message>
        <source>Toolbar</source>
        <translation>工具栏</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>撤销</translation>
    </message>
    <message>
        <source>Redo</source>
        <translation>重做</translation>
    </message>
    <message>
        <source>◀ Schedule</source>
        <translation>◀ 调度</translation>
    </message>
    <message>
        <source>Schedule ▶</source>
        <translation>调度 ▶</translation>
    </message>
    <message>
        <source>Pin as A</source>
        <translation>固定为 A</translation>
    </message>
    <message>
        <source>Show all</source>
        <translation>显示全部</translation>
    </message>
    <message>
        <source>Fit</source>
        <translation>适应窗口</translation>
    </message>
    <message>
        <source>Next bubble</source>
        <translation>下一个气泡</translation>
    </message>
    <message>
        <source>Critical path</source>
        <translation>关键路径</translation>
    </message>
    <message>
        <source>Causes</source>
        <translation>原因</translation>
    </message>
    <message>
        <source>Arrows</source>
        <translation>箭头</translation>
    </message>
    <message>
        <source>Counters</source>
        <translation>计数曲线</translation>
    </message>
    <message>
        <source>Table</source>
        <translation>表格</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>导出</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>主题</translation>
    </message>
    <message>
        <source>No screen can show %1</source>
        <translation>没有界面可以显示 %1</translation>
    </message>
    <message>
        <source>Stops all jobs and closes the window</source>
        <translation>停止所有后台任务并关闭窗口</translation>
    </message>
    <message>
        <source>Opens plans, traces, schedules, calibrations, models or clusters</source>
        <translation>打开计划、trace、调度、校准、模型或集群文件</translation>
    </message>
    <message>
        <source>Meshwright files (%1);;All files (*)</source>
        <translation>Meshwright 文件 (%1);;所有文件 (*)</translation>
    </message>
    <message>
        <source>Undoes the last change to the scenario</source>
        <translation>撤销对方案的上一次更改</translation>
    </message>
    <message>
        <source>Restores the last undone change</source>
        <translation>恢复上一次撤销的更改</translation>
    </message>
    <message>
        <source>Switches to the next schedule that this scenario allows</source>
        <translation>切换到此方案可用的下一个调度</translation>
    </message>
    <message>
        <source>Switches to the previous schedule that this scenario allows</source>
        <translation>切换到此方案可用的上一个调度</translation>
    </message>
    <message>
        <source>Appearance, units, shortcuts, language</source>
        <translation>外观、单位、快捷键、语言</translation>
    </message>
    <message>
        <source>Switches between light, dark and high contrast</source>
        <translation>在浅色、深色和高对比度之间切换</translation>
    </message>
    <message>
        <source>Shows the %1 screen</source>
        <translation>显示“%1”界面</translation>
    </message>
    <message>
        <source>Scenario &amp;parameters</source>
        <translation>方案参数(&amp;P)</translation>
    </message>
    <message>
        <source>Moves the keyboard focus to the scenario panel</source>
        <translation>将键盘焦点移到方案面板</translation>
    </message>
    <message>
        <source>Finds and runs any action by name</source>
        <translation>按名称查找并执行任意操作</translation>
    </message>
    <message>
        <source>&amp;Keyboard shortcuts</source>
        <translation>键盘快捷键(&amp;K)</translation>
    </message>
    <message>
        <source>Lists all keyboard shortcuts</source>
        <translation>列出全部键盘快捷键</translation>
    </message>
    <message>
        <source>Sort</source>
        <translation>排序</translation>
    </message>
    <message>
        <source>&amp;Full screen</source>
        <translation>全屏(&amp;F)</translation>
    </message>
    <message>
        <source>&amp;Examples</source>
        <translation>示例(&amp;E)</translation>
    </message>
    <message>
        <source>&amp;Copy</source>
        <translation>复制(&amp;C)</translation>
    </message>
    <message>
        <source>&amp;Panels</source>
        <translation>面板(&amp;P)</translation>
    </message>
    <message>
        <source>&amp;Zoom and pan</source>
        <translation>缩放与平移(&amp;Z)</translation>
    </message>
    <message>
        <source>&amp;Select and follow</source>
        <translation>选择与跟踪(&amp;S)</translation>
    </message>
    <message>
        <source>Sho&amp;w</source>
        <translation>显示(&amp;W)</translation>
    </message>
    <message>
        <source>&amp;Lecture mode</source>
        <translation>讲解模式(&amp;L)</translation>
    </message>
    <message>
        <source>Shows schedules on one time axis with large labels and a play head, without panels; again: back to the previous screen</source>
        <translation>在同一时间轴上以大字号和播放头显示多个调度，不显示面板；再按一次返回上一界面</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::MemoryBars</name>
    <message>
        <source>weights</source>
        <translation>权重</translation>
    </message>
    <message>
        <source>gradients</source>
        <translation>梯度</translation>
    </message>
    <message>
        <source>optimizer state</source>
        <translation>优化器状态</translation>
    </message>
    <message>
        <source>logits</source>
        <translation>logits</translation>
    </message>
    <message>
        <source>communication</source>
        <translation>通信缓冲区</translation>
    </message>
    <message>
        <source>reserved</source>
        <translation>预留</translation>
    </message>
    <message>
        <source>capacity %1</source>
        <translation>容量 %1</translation>
    </message>
    <message>
        <source>saved activations</source>
        <translation>保存的激活</translation>
    </message>
    <message>
        <source>working set</source>
        <translation>工作集</translation>
    </message>
    <message>
        <source>Memory per pipeline rank</source>
        <translation>各流水线 rank 的显存</translation>
    </message>
    <message>
        <source>pipeline rank</source>
        <translation>流水线 rank</translation>
    </message>
    <message>
        <source>pipeline rank %1: %2</source>
        <translation>流水线 rank %1：%2</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::MemoryCurve</name>
    <message>
        <source>Memory over time</source>
        <translation>显存随时间变化</translation>
    </message>
    <message>
        <source>peak %1 at %2</source>
        <translation>峰值 %1，位于 %2</translation>
    </message>
    <message>
        <source>Click to show this time in the timeline</source>
        <translation>单击以在时间线中显示该时刻</translation>
    </message>
    <message>
        <source>time on rank %1</source>
        <translation>rank %1 的时间</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::MemoryScreen</name>
    <message>
        <source>Memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>Peak memory</source>
        <translation>峰值显存</translation>
    </message>
    <message>
        <source>&lt;b&gt;Fits.&lt;/b&gt; The fullest device uses %1 of %2; headroom %3.</source>
        <translation>&lt;b&gt;放得下。&lt;/b&gt;占用最高的设备使用 %1 / %2，余量 %3。</translation>
    </message>
    <message>
        <source>&lt;b&gt;Does not fit.&lt;/b&gt; The fullest device needs %1, %2 more than its capacity of %3.</source>
        <translation>&lt;b&gt;放不下。&lt;/b&gt;占用最高的设备需要 %1，比容量 %3 多 %2。</translation>
    </message>
    <message>
        <source>pipeline rank</source>
        <translation>流水线 rank</translation>
    </message>
    <message>
        <source>total</source>
        <translation>合计</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::ParetoScatter</name>
    <message>
        <source>step time</source>
        <translation>单步时间</translation>
    </message>
    <message>
        <source>peak memory</source>
        <translation>峰值显存</translation>
    </message>
    <message>
        <source>Plans by step time and memory</source>
        <translation>按单步时间和显存排列的计划</translation>
    </message>
    <message>
        <source>plan %1: %2, %3</source>
        <translation>计划 %1：%2，%3</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::PlansScreen</name>
    <message>
        <source>recomputation</source>
        <translation>重计算</translation>
    </message>
    <message>
        <source>kernel launches</source>
        <translation>内核启动</translation>
    </message>
    <message>
        <source>optimizer</source>
        <translation>优化器</translation>
    </message>
    <message>
        <source>&amp;Search</source>
        <translation>搜索(&amp;S)</translation>
    </message>
    <message>
        <source>&amp;Cancel</source>
        <translation>取消(&amp;C)</translation>
    </message>
    <message>
        <source>Plans, best first</source>
        <translation>计划（最优在前）</translation>
    </message>
    <message>
        <source>schedule</source>
        <translation>调度</translation>
    </message>
    <message>
        <source>recompute</source>
        <translation>重计算</translation>
    </message>
    <message>
        <source>Why</source>
        <translation>选择理由</translation>
    </message>
    <message>
        <source>&amp;Search plans</source>
        <translation>搜索计划(&amp;S)</translation>
    </message>
    <message>
        <source>Search plans</source>
        <translation>搜索计划</translation>
    </message>
    <message>
        <source>No plan fits: %1</source>
        <translation>没有可行的计划：%1</translation>
    </message>
    <message>
        <source>bubble</source>
        <translation>气泡率</translation>
    </message>
    <message>
        <source>peak memory</source>
        <translation>峰值显存</translation>
    </message>
    <message>
        <source>headroom</source>
        <translation>显存余量</translation>
    </message>
    <message>
        <source>plan 1</source>
        <translation>计划 1</translation>
    </message>
    <message>
        <source>plan %1</source>
        <translation>计划 %1</translation>
    </message>
    <message>
        <source>Plans</source>
        <translation>计划</translation>
    </message>
    <message>
        <source>No plans yet</source>
        <translation>尚无计划</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>搜索</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>proved optimal within the searched space and cost model</source>
        <translation>在搜索空间与代价模型内已证明最优</translation>
    </message>
    <message>
        <source>optimality gap %1</source>
        <translation>最优性差距 %1</translation>
    </message>
    <message>
        <source>%1 candidates; pruned: %2; simulated: %3; %4</source>
        <translation>%1 个候选；剪枝：%2；模拟：%3；%4</translation>
    </message>
    <message>
        <source>Searches parallel degrees, pipeline schedules, micro-batch sizes, recomputation and ZeRO for the scenario&apos;s model and devices, and ranks the plans by simulated step time. Takes a few seconds.</source>
        <translation>针对方案的模型和设备，搜索并行度、流水线调度、微批次大小、重计算和 ZeRO，并按模拟的单步时间对计划排序。需数秒。</translation>
    </message>
    <message>
        <source>Restricts the search to the scenario&apos;s value</source>
        <translation>将搜索限制为方案的当前值</translation>
    </message>
    <message>
        <source>Finds the fastest plans for this model on these devices</source>
        <translation>为该模型在这些设备上寻找最快的计划</translation>
    </message>
    <message>
        <source>Cancels the search and keeps the previous results</source>
        <translation>取消搜索，保留之前的结果</translation>
    </message>
    <message>
        <source>Fix:</source>
        <translation>固定：</translation>
    </message>
    <message>
        <source>micro-batch size</source>
        <translation>微批次大小</translation>
    </message>
    <message>
        <source>Compare with best</source>
        <translation>与最优对比</translation>
    </message>
    <message>
        <source>Launch</source>
        <translation>启动</translation>
    </message>
    <message>
        <source>&amp;Cancel search</source>
        <translation>取消搜索(&amp;C)</translation>
    </message>
    <message>
        <source>&amp;Use plan as scenario</source>
        <translation>将计划用作方案(&amp;U)</translation>
    </message>
    <message>
        <source>Opens the selected plan as the scenario in Explore</source>
        <translation>将所选计划作为方案在“探索”中打开</translation>
    </message>
    <message>
        <source>C&amp;opy launch command</source>
        <translation>复制启动命令(&amp;O)</translation>
    </message>
    <message>
        <source>Copies the launch command or config file for the selected training framework</source>
        <translation>复制所选训练框架的启动命令或配置文件</translation>
    </message>
    <message>
        <source>Canceled.</source>
        <translation>已取消。</translation>
    </message>
    <message>
        <source>Closest plan: %1</source>
        <translation>最接近的计划：%1</translation>
    </message>
    <message>
        <source>parallelism</source>
        <translation>并行方式</translation>
    </message>
    <message>
        <source>step time</source>
        <translation>单步时间</translation>
    </message>
    <message>
        <source>tokens/s per GPU</source>
        <translation>每 GPU token/s</translation>
    </message>
    <message>
        <source>busiest rank</source>
        <translation>最忙的 rank</translation>
    </message>
    <message>
        <source>exposed comm.</source>
        <translation>未掩盖通信</translation>
    </message>
    <message>
        <source>Press Enter to open this plan in Explore.</source>
        <translation>按回车在“探索”中打开此计划。</translation>
    </message>
    <message>
        <source>Use plan %1</source>
        <translation>使用计划 %1</translation>
    </message>
    <message>
        <source>Searching plans for %1 devices…</source>
        <translation>正在为 %1 个设备搜索计划…</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::PointChart</name>
    <message>
        <source>Measured points</source>
        <translation>实测点</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::PreferencesDialog</name>
    <message>
        <source>Preferences</source>
        <translation>首选项</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>主题</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>浅色</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>深色</translation>
    </message>
    <message>
        <source>High contrast</source>
        <translation>高对比度</translation>
    </message>
    <message>
        <source>PyTorch</source>
        <translation>PyTorch</translation>
    </message>
    <message>
        <source>Megatron paper</source>
        <translation>Megatron 论文</translation>
    </message>
    <message>
        <source>Zero Bubble paper</source>
        <translation>Zero Bubble 论文</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>语言</translation>
    </message>
    <message>
        <source>Motion</source>
        <translation>动画</translation>
    </message>
    <message>
        <source>Action</source>
        <translation>操作</translation>
    </message>
    <message>
        <source> and </source>
        <translation> 和 </translation>
    </message>
    <message>
        <source>OK</source>
        <translation>确定</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Restore defaults</source>
        <translation>恢复默认</translation>
    </message>
    <message>
        <source>Appearance</source>
        <translation>外观</translation>
    </message>
    <message>
        <source>Shortcuts</source>
        <translation>快捷键</translation>
    </message>
    <message>
        <source>Meshwright collects no telemetry.</source>
        <translation>Meshwright 不收集任何遥测数据。</translation>
    </message>
    <message>
        <source>Color theme of the program</source>
        <translation>程序的配色主题</translation>
    </message>
    <message>
        <source>System default</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>Pass colors</source>
        <translation>前向与反向的配色</translation>
    </message>
    <message>
        <source>Colors of forward, backward and weight-gradient passes in timelines</source>
        <translation>时间线中前向、反向与权重梯度计算的颜色</translation>
    </message>
    <message>
        <source>Okabe–Ito (colorblind-safe)</source>
        <translation>Okabe–Ito（色盲友好）</translation>
    </message>
    <message>
        <source>Time unit</source>
        <translation>时间单位</translation>
    </message>
    <message>
        <source>Unit of all displayed times</source>
        <translation>所有显示时间的单位</translation>
    </message>
    <message>
        <source>automatic</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>Language of menus and texts</source>
        <translation>菜单与文字的语言</translation>
    </message>
    <message>
        <source>A language change takes effect after a restart.</source>
        <translation>更改语言后需重启才能生效。</translation>
    </message>
    <message>
        <source>Text size</source>
        <translation>文字大小</translation>
    </message>
    <message>
        <source>1 is the system text size</source>
        <translation>1 为系统文字大小</translation>
    </message>
    <message>
        <source>Reduce motion</source>
        <translation>减少动画</translation>
    </message>
    <message>
        <source>Turns off slice animations and smooth zooming</source>
        <translation>关闭切片动画和平滑缩放</translation>
    </message>
    <message>
        <source>Shortcut</source>
        <translation>快捷键</translation>
    </message>
    <message>
        <source>Moves the timeline while the key is held. Default: the keys at the positions of W, S, A, D on a US keyboard</source>
        <translation>按住时移动时间线。默认：美式键盘上 W、S、A、D 所在位置的键</translation>
    </message>
    <message>
        <source>Hold: zoom in</source>
        <translation>按住：放大</translation>
    </message>
    <message>
        <source>Hold: zoom out</source>
        <translation>按住：缩小</translation>
    </message>
    <message>
        <source>Hold: pan left</source>
        <translation>按住：向左平移</translation>
    </message>
    <message>
        <source>Hold: pan right</source>
        <translation>按住：向右平移</translation>
    </message>
    <message>
        <source>%1 is assigned to %2</source>
        <translation>%1 被分配给 %2</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::ProblemList</name>
    <message>
        <source>Where</source>
        <translation>位置</translation>
    </message>
    <message>
        <source>Problems</source>
        <translation>问题</translation>
    </message>
    <message>
        <source>Problem</source>
        <translation>问题</translation>
    </message>
    <message>
        <source>Hint</source>
        <translation>提示</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::RunScreen</name>
    <message>
        <source>&amp;Run</source>
        <translation>运行(&amp;R)</translation>
    </message>
    <message>
        <source>&amp;Stop</source>
        <translation>停止(&amp;S)</translation>
    </message>
    <message>
        <source>Co&amp;mpare</source>
        <translation>比较(&amp;M)</translation>
    </message>
    <message>
        <source>C&amp;lock</source>
        <translation>时钟(&amp;L)</translation>
    </message>
    <message>
        <source>R&amp;anks</source>
        <translation>rank(&amp;A)</translation>
    </message>
    <message>
        <source>S&amp;teps</source>
        <translation>步数(&amp;T)</translation>
    </message>
    <message>
        <source>Running…</source>
        <translation>正在运行…</translation>
    </message>
    <message>
        <source>Stopping…</source>
        <translation>正在停止…</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>运行</translation>
    </message>
    <message>
        <source>Waiting for the first step…</source>
        <translation>等待第一步…</translation>
    </message>
    <message>
        <source>No run yet</source>
        <translation>尚未运行</translation>
    </message>
    <message>
        <source>Run output</source>
        <translation>运行输出</translation>
    </message>
    <message>
        <source>virtual: CPU time of kernels, modeled message times · wall: wall-clock time · replay: sleeps for the predicted times</source>
        <translation>virtual：算子的 CPU 时间，消息时间取自模型 · wall：墙钟时间 · replay：按预测时间休眠</translation>
    </message>
    <message>
        <source>Runs each rank as a thread or as a process</source>
        <translation>以线程或进程运行每个 rank</translation>
    </message>
    <message>
        <source>Number of measured training steps; their median is compared</source>
        <translation>测量的训练步数；比较其中位数</translation>
    </message>
    <message>
        <source>Runs the scenario on this machine and measures its timeline</source>
        <translation>在本机运行方案并测量时间线</translation>
    </message>
    <message>
        <source>Stops the run and keeps the steps measured so far</source>
        <translation>停止运行，保留已测量的步</translation>
    </message>
    <message>
        <source>Compares the measured timeline with the prediction</source>
        <translation>将实测时间线与预测比较</translation>
    </message>
    <message>
        <source>&amp;Run scenario</source>
        <translation>运行方案(&amp;R)</translation>
    </message>
    <message>
        <source>&amp;Stop run</source>
        <translation>停止运行(&amp;S)</translation>
    </message>
    <message>
        <source>&amp;Compare with prediction</source>
        <translation>与预测比较(&amp;C)</translation>
    </message>
    <message>
        <source>Prepare run</source>
        <translation>准备运行</translation>
    </message>
    <message>
        <source>Canceled before the run started.</source>
        <translation>运行开始前已取消。</translation>
    </message>
    <message>
        <source>Read measured timeline</source>
        <translation>读取实测时间线</translation>
    </message>
    <message numerus="yes">
        <source>Finished %n step(s).</source>
        <translation>
            <numerusform>已完成 %n 步。</numerusform>
        </translation>
    </message>
    <message>
        <source>Failed with exit code %1; see the output below.</source>
        <translation>失败，退出码 %1；见下方输出。</translation>
    </message>
    <message>
        <source>Trains the model on this machine and measures the timeline. For small models only: all ranks share the cores of this machine.</source>
        <translation>在本机训练模型并测量时间线。仅适用于小模型：所有 rank 共享本机的 CPU 核。</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::ScenarioPanel</name>
    <message>
        <source>Job</source>
        <translation>训练任务</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Cluster</source>
        <translation>集群</translation>
    </message>
    <message>
        <source>Pipeline</source>
        <translation>流水线</translation>
    </message>
    <message>
        <source>Schedule</source>
        <translation>调度</translation>
    </message>
    <message>
        <source>Micro-batches</source>
        <translation>微批次数</translation>
    </message>
    <message>
        <source>Sequence parallelism</source>
        <translation>序列并行</translation>
    </message>
    <message>
        <source>ZeRO</source>
        <translation>ZeRO</translation>
    </message>
    <message>
        <source>1: optimizer state</source>
        <translation>1：优化器状态</translation>
    </message>
    <message>
        <source>Recompute</source>
        <translation>激活重计算</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>selective</source>
        <translation>选择性</translation>
    </message>
    <message>
        <source>full</source>
        <translation>完全</translation>
    </message>
    <message>
        <source>Batch</source>
        <translation>批次</translation>
    </message>
    <message>
        <source>Tokens per sequence</source>
        <translation>每条序列的 token 数</translation>
    </message>
    <message>
        <source>Pass times</source>
        <translation>前向与反向耗时</translation>
    </message>
    <message>
        <source>Forward</source>
        <translation>前向</translation>
    </message>
    <message>
        <source>Input gradient</source>
        <translation>输入梯度</translation>
    </message>
    <message>
        <source>Weight gradient</source>
        <translation>权重梯度</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>消息</translation>
    </message>
    <message>
        <source>HuggingFace configurations (*.json)</source>
        <translation>HuggingFace 配置 (*.json)</translation>
    </message>
    <message>
        <source>Cluster files (*.toml)</source>
        <translation>集群文件 (*.toml)</translation>
    </message>
    <message>
        <source>Schedule %1</source>
        <translation>调度 %1</translation>
    </message>
    <message>
        <source>Set pass times manually</source>
        <translation>手动设置前向与反向耗时</translation>
    </message>
    <message>
        <source>Use pass times of the cost model</source>
        <translation>使用代价模型的前向与反向耗时</translation>
    </message>
    <message>
        <source>custom order</source>
        <translation>自定义顺序</translation>
    </message>
    <message>
        <source>%1 devices, global batch size %2</source>
        <translation>%1 个设备，全局批次大小 %2</translation>
    </message>
    <message>
        <source>Open file…</source>
        <translation>打开文件…</translation>
    </message>
    <message>
        <source>Model to train: a preset or a config.json</source>
        <translation>要训练的模型：预设或 config.json</translation>
    </message>
    <message>
        <source>Cluster to train on: a preset or a TOML file</source>
        <translation>用于训练的集群：预设或 TOML 文件</translation>
    </message>
    <message>
        <source>Pipeline schedule. Press Alt+← and Alt+→ to step through all schedules</source>
        <translation>流水线调度。按 Alt+← 和 Alt+→ 逐一切换</translation>
    </message>
    <message>
        <source>Pipeline-parallel size</source>
        <translation>流水线并行度</translation>
    </message>
    <message>
        <source>Number of pipeline ranks</source>
        <translation>流水线 rank 数</translation>
    </message>
    <message>
        <source>Micro-batches per replica and step. With m &lt; p the pipeline never fills</source>
        <translation>单副本每步的微批次数。m &lt; p 时流水线无法填满</translation>
    </message>
    <message>
        <source>Model chunks per rank</source>
        <translation>每 rank 模型块数</translation>
    </message>
    <message>
        <source>Model chunks (virtual pipeline stages) per pipeline rank</source>
        <translation>每个流水线 rank 的模型块数（虚拟流水线阶段数）</translation>
    </message>
    <message>
        <source>Time per pipeline rank</source>
        <translation>各流水线 rank 的耗时</translation>
    </message>
    <message>
        <source>Slow down pipeline rank %1 ×%2</source>
        <translation>流水线 rank %1 减速 ×%2</translation>
    </message>
    <message>
        <source>Parallelism</source>
        <translation>并行</translation>
    </message>
    <message>
        <source>Tensor-parallel size</source>
        <translation>张量并行度</translation>
    </message>
    <message>
        <source>Number of shards of each weight matrix</source>
        <translation>每个权重矩阵的分片数</translation>
    </message>
    <message>
        <source>Data-parallel size</source>
        <translation>数据并行度</translation>
    </message>
    <message>
        <source>Number of model replicas. The number of micro-batches stays the same; the global batch size follows</source>
        <translation>模型副本数。微批次数不变，全局批次大小随之变化</translation>
    </message>
    <message>
        <source>Context-parallel size</source>
        <translation>上下文并行度</translation>
    </message>
    <message>
        <source>Number of shards of each sequence</source>
        <translation>每条序列的分片数</translation>
    </message>
    <message>
        <source>Expert-parallel size</source>
        <translation>专家并行度</translation>
    </message>
    <message>
        <source>Number of ranks that the experts are distributed over</source>
        <translation>专家所分布的 rank 数</translation>
    </message>
    <message>
        <source>Shards layer norms and dropouts along the sequence over the tensor-parallel ranks</source>
        <translation>在张量并行 rank 之间沿序列维切分 LayerNorm 和 dropout</translation>
    </message>
    <message>
        <source>Sharding over the data-parallel replicas: optimizer state, gradients, parameters</source>
        <translation>在数据并行副本之间切分：优化器状态、梯度、参数</translation>
    </message>
    <message>
        <source>0: no sharding</source>
        <translation>0：不切分</translation>
    </message>
    <message>
        <source>2: + gradients</source>
        <translation>2：+ 梯度</translation>
    </message>
    <message>
        <source>3: + parameters</source>
        <translation>3：+ 参数</translation>
    </message>
    <message>
        <source>Activations that the backward pass recomputes instead of keeping them in memory</source>
        <translation>不保存在显存中、反向时重新计算的激活</translation>
    </message>
    <message>
        <source>Micro-batch size</source>
        <translation>微批次大小</translation>
    </message>
    <message>
        <source>Sequences per micro-batch. The number of micro-batches stays the same; the global batch size follows</source>
        <translation>每个微批次的序列数。微批次数不变，全局批次大小随之变化</translation>
    </message>
    <message>
        <source>Sequence length</source>
        <translation>序列长度</translation>
    </message>
    <message>
        <source>Precision</source>
        <translation>精度</translation>
    </message>
    <message>
        <source>Number format of matrix multiplications</source>
        <translation>矩阵乘的数值格式</translation>
    </message>
    <message>
        <source>Set manually</source>
        <translation>手动设置</translation>
    </message>
    <message>
        <source>Sets the same pass times for all stages, replacing the cost model. Use the bars above to change individual pipeline ranks</source>
        <translation>为所有阶段设置相同的前向与反向耗时，代替代价模型。用上方的条形图调整单个流水线 rank</translation>
    </message>
    <message>
        <source>Forward pass of one micro-batch on one stage</source>
        <translation>一个微批次在一个阶段上的前向</translation>
    </message>
    <message>
        <source>Backward-input pass; the previous stage waits for it</source>
        <translation>输入梯度的反向计算；前一阶段等待其完成</translation>
    </message>
    <message>
        <source>Backward-weight pass; can run any time after the input gradient</source>
        <translation>权重梯度的反向计算；可在输入梯度之后任意时刻执行</translation>
    </message>
    <message>
        <source>Transfer between stages, overlapped with compute</source>
        <translation>阶段之间的传输，与计算重叠</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::ScheduleStack</name>
    <message>
        <source>Schedules on one time axis</source>
        <translation>同一时间轴上的调度</translation>
    </message>
    <message>
        <source>%1 · %2: %3</source>
        <translation>%1 · %2：%3</translation>
    </message>
    <message>
        <source>%1 · %2 — %3, bubble %4</source>
        <translation>%1 · %2 — %3，气泡率 %4</translation>
    </message>
    <message>
        <source> (%1 against A)</source>
        <translation>（相对 A：%1）</translation>
    </message>
    <message>
        <source>ideal %1</source>
        <translation>理想 %1</translation>
    </message>
    <message>
        <source>bound %1</source>
        <translation>下界 %1</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::SliceTable</name>
    <message>
        <source>Visible slices</source>
        <translation>可见切片</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::StageBars</name>
    <message>
        <source>Time per pipeline rank</source>
        <translation>各流水线 rank 的耗时</translation>
    </message>
    <message>
        <source>Drag a bar to slow down a pipeline rank; double-click to reset it</source>
        <translation>拖动条形可使流水线 rank 减速；双击恢复</translation>
    </message>
    <message>
        <source>Pipeline rank %1: %2 per micro-batch, slowdown ×%3.
Drag to change, double-click to reset.</source>
        <translation>流水线 rank %1：每个微批次 %2，减速 ×%3。
拖动更改，双击恢复。</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::SweepScreen</name>
    <message>
        <source>step time</source>
        <translation>单步时间</translation>
    </message>
    <message>
        <source>MFU</source>
        <translation>MFU</translation>
    </message>
    <message>
        <source>peak memory</source>
        <translation>峰值显存</translation>
    </message>
    <message>
        <source>&amp;Rows</source>
        <translation>行(&amp;R)</translation>
    </message>
    <message>
        <source>C&amp;olumns</source>
        <translation>列(&amp;O)</translation>
    </message>
    <message>
        <source>Sweep &amp;schedules</source>
        <translation>扫描调度(&amp;S)</translation>
    </message>
    <message numerus="yes">
        <source>%n combinations…</source>
        <translation>
            <numerusform>%n 种组合…</numerusform>
        </translation>
    </message>
    <message>
        <source>Sweep</source>
        <translation>扫描</translation>
    </message>
    <message>
        <source>bubble fraction (period)</source>
        <translation>气泡率（周期）</translation>
    </message>
    <message>
        <source>bubble fraction (makespan)</source>
        <translation>气泡率（总耗时）</translation>
    </message>
    <message>
        <source>tokens/s per GPU</source>
        <translation>每 GPU token/s</translation>
    </message>
    <message>
        <source>&amp;Metric</source>
        <translation>指标(&amp;M)</translation>
    </message>
    <message>
        <source>Quantity shown by the cells and the contour lines</source>
        <translation>单元格与等值线所显示的指标</translation>
    </message>
    <message>
        <source>Parameter on the vertical axis</source>
        <translation>纵轴参数</translation>
    </message>
    <message>
        <source>Parameter on the horizontal axis</source>
        <translation>横轴参数</translation>
    </message>
    <message>
        <source>Sweeps all schedules over the number of micro-batches</source>
        <translation>对所有调度扫描微批次数</translation>
    </message>
    <message>
        <source>&amp;Next sweep metric</source>
        <translation>下一个扫描指标(&amp;N)</translation>
    </message>
    <message>
        <source>Cycles through bubble fraction, step time, MFU, tokens/s and peak memory</source>
        <translation>依次切换气泡率、单步时间、MFU、token/s 和峰值显存</translation>
    </message>
    <message>
        <source>hatched: does not fit in memory · –: invalid (%1 of %2 combinations) · click a cell to use its values</source>
        <translation>阴影：显存放不下 · –：无效（%2 种组合中的 %1 种）· 单击单元格以采用其取值</translation>
    </message>
    <message>
        <source>Use %1 %2, %3 %4</source>
        <translation>采用 %1 %2，%3 %4</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::TimelinePrompt</name>
    <message>
        <source>Rank, time or both, for example r12 3.5ms</source>
        <translation>rank、时间或两者，例如 r12 3.5ms</translation>
    </message>
    <message>
        <source>Part of a slice name, for example F7 or all-reduce</source>
        <translation>切片名称的一部分，例如 F7 或 all-reduce</translation>
    </message>
    <message>
        <source>Not found: %1</source>
        <translation>未找到：%1</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>搜索</translation>
    </message>
    <message numerus="yes">
        <source>%n match(es)</source>
        <translation>
            <numerusform>%n 个匹配</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>meshwright::gui::TimelineTableModel</name>
    <message>
        <source>Rank</source>
        <translation>Rank</translation>
    </message>
    <message>
        <source>Stream</source>
        <translation>流</translation>
    </message>
    <message>
        <source>Stage</source>
        <translation>阶段</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>类型</translation>
    </message>
    <message>
        <source>Micro-batch</source>
        <translation>微批次</translation>
    </message>
    <message>
        <source>Start</source>
        <translation>开始</translation>
    </message>
    <message>
        <source>Duration</source>
        <translation>时长</translation>
    </message>
    <message>
        <source>Slack</source>
        <translation>松弛时间</translation>
    </message>
    <message>
        <source>Waits for</source>
        <translation>等待</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::TimelineView</name>
    <message>
        <source> · waits for %1</source>
        <translation> · 等待 %1</translation>
    </message>
    <message>
        <source>rank %1, %2: %3</source>
        <translation>rank %1，%2：%3</translation>
    </message>
    <message>
        <source>visible slice %1</source>
        <translation>可见切片 %1</translation>
    </message>
    <message>
        <source>Timeline</source>
        <translation>时间线</translation>
    </message>
    <message>
        <source>Nothing to show yet</source>
        <translation>尚无内容可显示</translation>
    </message>
    <message>
        <source>rank %1</source>
        <translation>rank %1</translation>
    </message>
    <message>
        <source>measured</source>
        <translation>实测</translation>
    </message>
    <message>
        <source>predicted</source>
        <translation>预测</translation>
    </message>
    <message>
        <source>memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>in flight</source>
        <translation>在途</translation>
    </message>
    <message>
        <source>streams</source>
        <translation>流</translation>
    </message>
    <message>
        <source>difference</source>
        <translation>差异</translation>
    </message>
    <message>
        <source>Δt %1</source>
        <translation>Δt %1</translation>
    </message>
    <message>
        <source>Zoom in (W)</source>
        <translation>放大 (W)</translation>
    </message>
    <message>
        <source>Zoom out (S)</source>
        <translation>缩小 (S)</translation>
    </message>
    <message>
        <source>Previous bubble</source>
        <translation>上一个气泡</translation>
    </message>
    <message>
        <source>Critical path</source>
        <translation>关键路径</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>搜索</translation>
    </message>
    <message>
        <source>Go to rank or time</source>
        <translation>转到 rank 或时间</translation>
    </message>
    <message>
        <source>Slices of each rank over time</source>
        <translation>各 rank 随时间的切片</translation>
    </message>
    <message>
        <source>Pan left (A)</source>
        <translation>向左平移 (A)</translation>
    </message>
    <message>
        <source>Pan right (D)</source>
        <translation>向右平移 (D)</translation>
    </message>
    <message>
        <source>Show all</source>
        <translation>显示全部</translation>
    </message>
    <message>
        <source>Go to end</source>
        <translation>转到末尾</translation>
    </message>
    <message>
        <source>Center selection, then zoom to fit</source>
        <translation>选区居中，再缩放至适合</translation>
    </message>
    <message>
        <source>Next slice in row</source>
        <translation>该行下一个切片</translation>
    </message>
    <message>
        <source>Previous slice in row</source>
        <translation>该行上一个切片</translation>
    </message>
    <message>
        <source>Follow dependency forward</source>
        <translation>沿依赖向前</translation>
    </message>
    <message>
        <source>Follow dependency back</source>
        <translation>沿依赖向后</translation>
    </message>
    <message>
        <source>Convert selection to area</source>
        <translation>选区转为区域</translation>
    </message>
    <message>
        <source>Set cursors to selection</source>
        <translation>将游标设到选区</translation>
    </message>
    <message>
        <source>Next match</source>
        <translation>下一个匹配</translation>
    </message>
    <message>
        <source>Previous match</source>
        <translation>上一个匹配</translation>
    </message>
    <message>
        <source>Next bubble (largest first)</source>
        <translation>下一个气泡（由大到小）</translation>
    </message>
    <message>
        <source>Pin or unpin row</source>
        <translation>固定或取消固定该行</translation>
    </message>
    <message>
        <source>Sort ranks by number, pipeline rank or busy time</source>
        <translation>按编号、流水线 rank 或忙碌时间排列 rank</translation>
    </message>
    <message>
        <source>Show all replicas</source>
        <translation>显示全部副本</translation>
    </message>
    <message>
        <source>Show streams of all ranks</source>
        <translation>显示所有 rank 的流</translation>
    </message>
    <message>
        <source>Slice in next row</source>
        <translation>下一行的切片</translation>
    </message>
    <message>
        <source>Slice in previous row</source>
        <translation>上一行的切片</translation>
    </message>
    <message>
        <source>Page down</source>
        <translation>向下翻页</translation>
    </message>
    <message>
        <source>Page up</source>
        <translation>向上翻页</translation>
    </message>
    <message>
        <source>Clear selection</source>
        <translation>清除选区</translation>
    </message>
    <message>
        <source>Slow down pipeline rank %1 by 20 %</source>
        <translation>使流水线 rank %1 慢 20 %</translation>
    </message>
    <message>
        <source>Reset the speed of pipeline rank %1</source>
        <translation>恢复流水线 rank %1 的速度</translation>
    </message>
    <message>
        <source>stage time × %1</source>
        <translation>阶段耗时 × %1</translation>
    </message>
    <message>
        <source>same position</source>
        <translation>位置不变</translation>
    </message>
    <message>
        <source>move to position %1</source>
        <translation>移到第 %1 位</translation>
    </message>
    <message>
        <source>pp rank %1</source>
        <translation>pp rank %1</translation>
    </message>
    <message>
        <source>visible: %1</source>
        <translation>可见：%1</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::TopologyMap</name>
    <message>
        <source>node %1</source>
        <translation>节点 %1</translation>
    </message>
    <message>
        <source>rank %1: %2</source>
        <translation>rank %1：%2</translation>
    </message>
    <message>
        <source>network %1</source>
        <translation>网络 %1</translation>
    </message>
    <message>
        <source>Nodes and devices</source>
        <translation>节点与设备</translation>
    </message>
    <message>
        <source>link utilization %1, mean over a step</source>
        <translation>链路利用率 %1（一步内平均）</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::TopologyScreen</name>
    <message>
        <source>NVLink mesh</source>
        <translation>NVLink 网状互连</translation>
    </message>
    <message>
        <source>PCIe</source>
        <translation>PCIe</translation>
    </message>
    <message>
        <source>shared memory</source>
        <translation>共享内存</translation>
    </message>
    <message>
        <source>Topology</source>
        <translation>拓扑</translation>
    </message>
    <message>
        <source>link</source>
        <translation>链路</translation>
    </message>
    <message>
        <source>used</source>
        <translation>已用</translation>
    </message>
    <message>
        <source>%1: %2 of %3, mean over a step</source>
        <translation>%1：%2 / %3，一步内平均</translation>
    </message>
    <message>
        <source>NVSwitch</source>
        <translation>NVSwitch</translation>
    </message>
    <message>
        <source>Process &amp;groups</source>
        <translation>通信组(&amp;G)</translation>
    </message>
    <message>
        <source>Process groups</source>
        <translation>通信组</translation>
    </message>
    <message>
        <source>Colors devices by tensor-, context-, data- or pipeline-parallel process group</source>
        <translation>按张量、上下文、数据或流水线并行的通信组为设备着色</translation>
    </message>
    <message>
        <source>Links, highest utilization first</source>
        <translation>链路（利用率最高的在前）</translation>
    </message>
    <message>
        <source>utilization</source>
        <translation>利用率</translation>
    </message>
    <message>
        <source>Next topology &amp;axis</source>
        <translation>下一个拓扑轴(&amp;A)</translation>
    </message>
    <message>
        <source>Cycles the coloring through tensor-, context-, data- and pipeline-parallel groups</source>
        <translation>依次按张量、上下文、数据、流水线并行组着色</translation>
    </message>
    <message>
        <source>%1 × %2, %3 per node, %4 with %5 per device</source>
        <translation>%1 × %2，每节点 %3 个，%4，每设备 %5</translation>
    </message>
    <message>
        <source>; inter-node: %1 ports of %2 per node</source>
        <translation>；节点间：每节点 %1 个端口，每个 %2</translation>
    </message>
    <message>
        <source>Compute link utilization</source>
        <translation>计算链路利用率</translation>
    </message>
    <message>
        <source>Mean over a step, per link and direction: messages between stages and all collectives</source>
        <translation>一步内的平均值，按链路和方向：阶段之间的消息和全部集合通信</translation>
    </message>
    <message>
        <source>Too many ranks to compute link utilization</source>
        <translation>rank 过多，无法计算链路利用率</translation>
    </message>
    <message>
        <source>&lt;b&gt;Rank %1&lt;/b&gt; · each device shows its rank and its ·position in the process group; outlined: same group</source>
        <translation>&lt;b&gt;Rank %1&lt;/b&gt; · 每个设备显示其 rank 及在通信组内的 ·位置；带边框者属于同一组</translation>
    </message>
    <message>
        <source>&lt;tr&gt;&lt;td&gt;&lt;b&gt;%1&lt;/b&gt;&lt;/td&gt;&lt;td&gt;%2 ranks: %3&lt;/td&gt;&lt;td&gt;%4&lt;/td&gt;&lt;td&gt;exposed communication: %5 of the step&lt;/td&gt;&lt;/tr&gt;</source>
        <translation>&lt;tr&gt;&lt;td&gt;&lt;b&gt;%1&lt;/b&gt;&lt;/td&gt;&lt;td&gt;%2 个 rank：%3&lt;/td&gt;&lt;td&gt;%4&lt;/td&gt;&lt;td&gt;未掩盖的通信：占单步的 %5&lt;/td&gt;&lt;/tr&gt;</translation>
    </message>
    <message>
        <source>intra-node</source>
        <translation>节点内</translation>
    </message>
    <message>
        <source>across %1 nodes</source>
        <translation>跨 %1 个节点</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::Waterfall</name>
    <message>
        <source>Step time difference</source>
        <translation>单步时间差异</translation>
    </message>
    <message>
        <source>the axis starts at %1</source>
        <translation>坐标轴从 %1 开始</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::WelcomeScreen</name>
    <message>
        <source>The textbook bubble</source>
        <translation>教科书气泡</translation>
    </message>
    <message>
        <source>Zero bubble</source>
        <translation>零气泡</translation>
    </message>
    <message>
        <source>DualPipeV</source>
        <translation>DualPipeV</translation>
    </message>
    <message>
        <source>A straggler</source>
        <translation>慢节点</translation>
    </message>
    <message>
        <source>GPT-3 on 1,024 GPUs</source>
        <translation>1,024 个 GPU 上的 GPT-3</translation>
    </message>
    <message>
        <source>Recent files</source>
        <translation>最近的文件</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>打开</translation>
    </message>
    <message>
        <source>Drop files here: plans, traces (.pftrace, Chrome, Kineto), schedules (CSV),
calibrations, models (config.json), clusters (TOML)</source>
        <translation>将文件拖到此处：计划、trace（.pftrace、Chrome、Kineto）、调度（CSV）、
校准、模型（config.json）、集群（TOML）</translation>
    </message>
    <message>
        <source>Examples</source>
        <translation>示例</translation>
    </message>
    <message>
        <source>Example: %1</source>
        <translation>示例：%1</translation>
    </message>
    <message>
        <source>Open example %1</source>
        <translation>打开示例 %1</translation>
    </message>
    <message>
        <source>Welcome</source>
        <translation>欢迎</translation>
    </message>
    <message>
        <source>%1 on %2: %3, %4</source>
        <translation>%1，%2：%3，%4</translation>
    </message>
    <message>
        <source>&amp;Continue where you left off</source>
        <translation>继续上次的工作(&amp;C)</translation>
    </message>
    <message>
        <source>Continue where you left off</source>
        <translation>继续上次的工作</translation>
    </message>
    <message>
        <source>Continue: %1</source>
        <translation>继续：%1</translation>
    </message>
    <message>
        <source>1F1B with four equal stages: a bubble of exactly (p − 1) / (m + p − 1)</source>
        <translation>1F1B，四个相同阶段：气泡率恰为 (p − 1) / (m + p − 1)</translation>
    </message>
    <message>
        <source>Interleaved 1F1B</source>
        <translation>交错 1F1B</translation>
    </message>
    <message>
        <source>GPT-3 175B with three model chunks per rank: smaller bubble, more messages</source>
        <translation>GPT-3 175B，每 rank 三个模型块：气泡更小，消息更多</translation>
    </message>
    <message>
        <source>Weight-gradient passes fill the bubbles of 1F1B at the same memory</source>
        <translation>在显存不变的情况下，用权重梯度计算填补 1F1B 的气泡</translation>
    </message>
    <message>
        <source>One pipeline rank is 30 % slower: see which ranks wait for it</source>
        <translation>一个流水线 rank 慢 30 %：看哪些 rank 在等它</translation>
    </message>
    <message>
        <source>TP 8, PP 16 with 6 model chunks, DP 8</source>
        <translation>TP 8，PP 16（每 rank 6 个模型块），DP 8</translation>
    </message>
    <message>
        <source>Plan, simulate and run parallel training of large models.</source>
        <translation>规划、模拟并运行大模型并行训练。</translation>
    </message>
    <message>
        <source>Opens the scenario of the last session</source>
        <translation>打开上次会话的方案</translation>
    </message>
    <message>
        <source>No scenario from an earlier session</source>
        <translation>没有以前会话的方案</translation>
    </message>
    <message>
        <source>No recent files</source>
        <translation>没有最近的文件</translation>
    </message>
    <message>
        <source>Overlapped forward and backward passes on a V-shaped placement</source>
        <translation>在 V 形放置上重叠前向与反向</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::Workbench</name>
    <message>
        <source>Simulate</source>
        <translation>模拟</translation>
    </message>
    <message>
        <source>Open %1</source>
        <translation>打开 %1</translation>
    </message>
    <message numerus="yes">
        <source>Open %n files</source>
        <translation>
            <numerusform>打开 %n 个文件</numerusform>
        </translation>
    </message>
    <message>
        <source>Find bubble causes</source>
        <translation>查找气泡原因</translation>
    </message>
</context>
</TS>
