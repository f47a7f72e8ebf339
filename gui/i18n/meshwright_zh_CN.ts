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
        <source>expert products</source>
        <translation>专家矩阵乘</translation>
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
        <translation>气泡：依赖</translation>
    </message>
    <message>
        <source>bubble: imbalance</source>
        <translation>气泡：不均衡</translation>
    </message>
    <message>
        <source>exposed %1 messages</source>
        <translation>暴露的 %1 通信</translation>
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
        <translation>内存</translation>
    </message>
    <message>
        <source>bound</source>
        <translation>下界</translation>
    </message>
    <message>
        <source>dominated</source>
        <translation>被支配</translation>
    </message>
</context>
<context>
    <name>QObject</name>
    <message>
        <source>as A</source>
        <translation>同 A</translation>
    </message>
    <message>
        <source>%1 vs A</source>
        <translation>%1（对比 A）</translation>
    </message>
    <message>
        <source>pt</source>
        <translation>个百分点</translation>
    </message>
    <message>
        <source>something is still being worked out</source>
        <translation>仍有内容在计算</translation>
    </message>
    <message>
        <source>cannot write %1</source>
        <translation>无法写入 %1</translation>
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
        <translation>种类</translation>
    </message>
    <message>
        <source>Starts</source>
        <translation>开始</translation>
    </message>
    <message>
        <source>Takes</source>
        <translation>耗时</translation>
    </message>
    <message>
        <source>Slack</source>
        <translation>松弛</translation>
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
        <source>Started when it did because of</source>
        <translation>决定其开始时刻的是</translation>
    </message>
    <message>
        <source>Bubble of %1</source>
        <translation>气泡 %1</translation>
    </message>
    <message>
        <source>before %1</source>
        <translation>位于 %1 之前</translation>
    </message>
    <message>
        <source>It waited for</source>
        <translation>它在等待</translation>
    </message>
    <message numerus="yes">
        <source>%1 of %n rows</source>
        <translation>
            <numerusform>%n 行，共 %1</numerusform>
        </translation>
    </message>
    <message>
        <source>Slices</source>
        <translation>片段</translation>
    </message>
    <message>
        <source>Idle</source>
        <translation>空闲</translation>
    </message>
    <message>
        <source>Of the compute rows</source>
        <translation>计算行之中</translation>
    </message>
    <message>
        <source>Where the step goes</source>
        <translation>单步时间构成</translation>
    </message>
    <message>
        <source>recomputation</source>
        <translation>重计算</translation>
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
        <source>Step</source>
        <translation>单步</translation>
    </message>
    <message>
        <source>Pipeline</source>
        <translation>流水线</translation>
    </message>
    <message>
        <source>Period</source>
        <translation>周期</translation>
    </message>
    <message>
        <source>Per GPU</source>
        <translation>每 GPU</translation>
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
        <source>Times: %1; unvalidated on this cluster.</source>
        <translation>时间来源：%1；未在此集群上验证。</translation>
    </message>
</context>
<context>
    <name>SweepAxis</name>
    <message>
        <source>pipeline p</source>
        <translation>流水线 p</translation>
    </message>
    <message>
        <source>micro-batches m</source>
        <translation>微批数 m</translation>
    </message>
    <message>
        <source>schedule</source>
        <translation>调度</translation>
    </message>
    <message>
        <source>chunks v</source>
        <translation>块数 v</translation>
    </message>
    <message>
        <source>tensor TP</source>
        <translation>张量并行 TP</translation>
    </message>
    <message>
        <source>replicas DP</source>
        <translation>副本数 DP</translation>
    </message>
    <message>
        <source>sequences in a micro-batch</source>
        <translation>每微批序列数</translation>
    </message>
    <message>
        <source>recompute</source>
        <translation>重计算</translation>
    </message>
    <message>
        <source>sharding</source>
        <translation>切分 (ZeRO)</translation>
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
        <translation>依赖</translation>
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
        <source>message of rank %1 (%2)</source>
        <translation>rank %1 的消息（%2）</translation>
    </message>
    <message>
        <source>%1 of stage %2</source>
        <translation>%1，阶段 %2</translation>
    </message>
    <message>
        <source>%1 of rank %2</source>
        <translation>%1，rank %2</translation>
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
        <source>%1 from %2</source>
        <translation>%1，起于 %2</translation>
    </message>
    <message>
        <source>critical: no slack</source>
        <translation>关键：无松弛</translation>
    </message>
    <message>
        <source>slack %1</source>
        <translation>松弛 %1</translation>
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
        <source>%1 here: %2</source>
        <translation>此处 %1：%2</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::CalibrationScreen</name>
    <message>
        <source>, causal</source>
        <translation>，因果</translation>
    </message>
    <message>
        <source>size of the whole buffer</source>
        <translation>整个缓冲区大小</translation>
    </message>
    <message>
        <source>time of one call</source>
        <translation>单次调用时间</translation>
    </message>
    <message>
        <source>arithmetic of one call, FLOP</source>
        <translation>单次调用的运算量，FLOP</translation>
    </message>
    <message>
        <source>memory traffic of one call</source>
        <translation>单次调用的访存量</translation>
    </message>
    <message>
        <source>batch %1, %2 × %3 × %4: %5, spread %6 of %7</source>
        <translation>批 %1，%2 × %3 × %4：%5，离散 %6，共 %7 次</translation>
    </message>
    <message>
        <source>Measured curves</source>
        <translation>实测曲线</translation>
    </message>
    <message>
        <source>Where the calibration is from</source>
        <translation>校准来源</translation>
    </message>
    <message>
        <source>&amp;Use the calibration</source>
        <translation>使用该校准(&amp;U)</translation>
    </message>
    <message>
        <source>The scenario is priced by the measured curves</source>
        <translation>方案按实测曲线定价</translation>
    </message>
    <message>
        <source>&lt;p&gt;&lt;b&gt;%1&lt;/b&gt;, %2 cores, %3 memory&lt;br&gt;message %4 + size over %5&lt;br&gt;memory %6&lt;/p&gt;</source>
        <translation>&lt;p&gt;&lt;b&gt;%1&lt;/b&gt;，%2 核，内存 %3&lt;br&gt;消息 %4 + 大小 / %5&lt;br&gt;访存 %6&lt;/p&gt;</translation>
    </message>
    <message>
        <source>Use the calibration %1</source>
        <translation>使用校准 %1</translation>
    </message>
    <message>
        <source>Calibration</source>
        <translation>校准</translation>
    </message>
    <message>
        <source>No calibration is open</source>
        <translation>尚未打开校准</translation>
    </message>
    <message>
        <source>Open…</source>
        <translation>打开…</translation>
    </message>
    <message>
        <source>Open a calibration</source>
        <translation>打开校准</translation>
    </message>
    <message>
        <source>Calibrations (*.json);;All files (*)</source>
        <translation>校准 (*.json);;所有文件 (*)</translation>
    </message>
    <message>
        <source>%1: %2 curves of collectives, %3 families of kernels. Ctrl+Alt+P prices the scenario by them.</source>
        <translation>%1：%2 条集合通信曲线，%3 个算子族。Ctrl+Alt+P 按其为方案定价。</translation>
    </message>
    <message>
        <source>the other points alone say %1</source>
        <translation>仅凭其余各点推算为 %1</translation>
    </message>
    <message>
        <source>○ what all other points say of each one: missed by %1 (median), %2 at most</source>
        <translation>○ 用其余各点推算每一点：偏差中位数 %1，最大 %2</translation>
    </message>
    <message>
        <source>&amp;Measure this machine</source>
        <translation>测量本机(&amp;M)</translation>
    </message>
    <message>
        <source>&amp;Stop</source>
        <translation>停止(&amp;S)</translation>
    </message>
    <message>
        <source>&amp;Quickly</source>
        <translation>快速(&amp;Q)</translation>
    </message>
    <message>
        <source>&amp;Price the scenario by it</source>
        <translation>用它给方案计价(&amp;P)</translation>
    </message>
    <message>
        <source>Measured times of kernels and messages, as points and curves. Measure this machine, or open a file: `meshwright calibrate` writes them, on a GPU with `--device cuda`, and `meshwright import` reads the output of nccl-tests.</source>
        <translation>以点和曲线显示实测的内核与消息时间。可以测量本机，也可以打开文件：`meshwright calibrate` 写出这种文件（在 GPU 上加 `--device cuda`），`meshwright import` 读取 nccl-tests 的输出。</translation>
    </message>
    <message>
        <source>20 seconds in place of two minutes, fewer shapes</source>
        <translation>20 秒而不是两分钟，形状较少</translation>
    </message>
    <message>
        <source>Progress of the measurement</source>
        <translation>测量进度</translation>
    </message>
    <message>
        <source>Measuring…</source>
        <translation>正在测量…</translation>
    </message>
    <message>
        <source>Measured.</source>
        <translation>测量完成。</translation>
    </message>
    <message>
        <source>Not measured: %1</source>
        <translation>未能测量：%1</translation>
    </message>
    <message>
        <source>Times kernels and messages, then prices the scenario by them</source>
        <translation>测量内核与消息的时间，再用它们给方案计价</translation>
    </message>
    <message>
        <source>Stop measur&amp;ing</source>
        <translation>停止测量(&amp;I)</translation>
    </message>
    <message>
        <source>Nothing of it is kept</source>
        <translation>不保留任何结果</translation>
    </message>
    <message>
        <source>%1, %2 ranks</source>
        <translation>%1，%2 个 rank</translation>
    </message>
    <message>
        <source> on %1 nodes</source>
        <translation>，%1 个节点</translation>
    </message>
    <message>
        <source>Without &amp;outliers</source>
        <translation>排除离群点(&amp;O)</translation>
    </message>
    <message>
        <source>Leaves out points that the others miss by far: beyond the quartiles of all misses by more than one and a half times their distance</source>
        <translation>排除其余各点远远推算不准的点：偏差超出四分位数达四分位距的一倍半以上</translation>
    </message>
    <message>
        <source>Times kernels and messages on this machine: about two minutes</source>
        <translation>在本机测量内核与消息的时间：约两分钟</translation>
    </message>
    <message>
        <source>Ends the measurement; nothing of it is kept</source>
        <translation>结束测量，不保留任何结果</translation>
    </message>
    <message>
        <source>Times of the scenario come from what was measured, not from formulas</source>
        <translation>方案的时间取自测量结果，而非公式</translation>
    </message>
    <message>
        <source>Show a curve</source>
        <translation>显示曲线</translation>
    </message>
    <message>
        <source>dashed: α + S / β, α = %1, β = %2</source>
        <translation>虚线：α + S / β，α = %1，β = %2</translation>
    </message>
    <message numerus="yes">
        <source>%n outlier(s) left out</source>
        <translation>
            <numerusform>已排除 %n 个离群点</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n outlier(s)</source>
        <translation>
            <numerusform>%n 个离群点</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>meshwright::gui::ChildProgram</name>
    <message>
        <source>The program could not be started: %1</source>
        <translation>程序无法启动：%1</translation>
    </message>
    <message>
        <source>The program meshwright was found neither beside this one nor on the path: build it, or put it there.</source>
        <translation>本程序旁边和 PATH 中都没有找到程序 meshwright：请构建它，或把它放到那里。</translation>
    </message>
    <message>
        <source>It was killed.</source>
        <translation>它被强行终止了。</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::CommandPalette</name>
    <message>
        <source>Type what you want to do</source>
        <translation>输入要执行的操作</translation>
    </message>
    <message>
        <source>Command</source>
        <translation>命令</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::CompareScreen</name>
    <message>
        <source>Align</source>
        <translation>对齐</translation>
    </message>
    <message>
        <source>&amp;Align by</source>
        <translation>对齐方式(&amp;A)</translation>
    </message>
    <message>
        <source>start of the step</source>
        <translation>步开始</translation>
    </message>
    <message>
        <source>first forward pass</source>
        <translation>首个前向</translation>
    </message>
    <message>
        <source>No comparison yet</source>
        <translation>尚无比较</translation>
    </message>
    <message>
        <source>Compare &amp;two traces…</source>
        <translation>比较两条轨迹…(&amp;T)</translation>
    </message>
    <message>
        <source>The predicted one, then the measured one</source>
        <translation>先预测，后实测</translation>
    </message>
    <message>
        <source>Predicted and measured trace</source>
        <translation>预测与实测轨迹</translation>
    </message>
    <message>
        <source>Traces (*.pftrace *.json *.json.gz);;All files (*)</source>
        <translation>轨迹 (*.pftrace *.json *.json.gz);;所有文件 (*)</translation>
    </message>
    <message>
        <source>Choose two files: the predicted and the measured trace.</source>
        <translation>请选择两个文件：预测轨迹和实测轨迹。</translation>
    </message>
    <message>
        <source>Compare</source>
        <translation>比较</translation>
    </message>
    <message>
        <source>%1, alone. A measured trace that is opened is laid on the scenario.</source>
        <translation>仅 %1。打开实测轨迹后会与当前方案对齐。</translation>
    </message>
    <message>
        <source>mean shift of starts %1</source>
        <translation>开始时刻平均偏移 %1</translation>
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
        <source>The lanes stand side by side, but the tasks could not be joined: %1</source>
        <translation>两组时间线已并列，但任务无法匹配：%1</translation>
    </message>
    <message>
        <source>Step: predicted &lt;b&gt;%1&lt;/b&gt;, measured &lt;b&gt;%2&lt;/b&gt; (median of %3, spread %4): &lt;b&gt;%5&lt;/b&gt; · %6 tasks joined</source>
        <translation>单步：预测 &lt;b&gt;%1&lt;/b&gt;，实测 &lt;b&gt;%2&lt;/b&gt;（%3 步中位数，离散 %4）：&lt;b&gt;%5&lt;/b&gt; · 匹配 %6 个任务</translation>
    </message>
    <message>
        <source>hand</source>
        <translation>手动</translation>
    </message>
    <message>
        <source>What is added to the measured times</source>
        <translation>加到实测时间上的偏移</translation>
    </message>
    <message>
        <source>Open a measured trace: it is laid on the scenario. Or choose two files with Compare in the menu Run, or carry a scenario out on the screen Run.</source>
        <translation>打开一条实测轨迹，它会与当前方案对齐。也可在“运行”菜单中选择两个文件进行比较，或在“运行”页实际执行方案。</translation>
    </message>
    <message>
        <source>Choose two traces…</source>
        <translation>选择两条轨迹…</translation>
    </message>
    <message>
        <source>Re&amp;calibrate</source>
        <translation>重新校准(&amp;C)</translation>
    </message>
    <message>
        <source>Moves the predicted slices to where they were measured</source>
        <translation>把预测的片段移到实测的位置</translation>
    </message>
    <message>
        <source>predicte&amp;d</source>
        <translation>预测(&amp;D)</translation>
    </message>
    <message>
        <source>Measures this machine, prices the scenario by it and compares again</source>
        <translation>测量本机，用结果给方案计价，然后再次比较</translation>
    </message>
    <message>
        <source>&amp;Morph predicted into measured</source>
        <translation>从预测变形为实测(&amp;M)</translation>
    </message>
    <message>
        <source>And back: every slice moves to where it was measured</source>
        <translation>再来一次则还原：每个片段移到其实测位置</translation>
    </message>
    <message>
        <source>&amp;Lay the measured trace on the scenario</source>
        <translation>把实测轨迹叠到方案上(&amp;L)</translation>
    </message>
    <message>
        <source>As the scenario is now</source>
        <translation>按方案现在的样子</translation>
    </message>
    <message>
        <source>Re&amp;calibrate and compare again</source>
        <translation>重新校准并再次比较(&amp;C)</translation>
    </message>
    <message>
        <source>Find a task</source>
        <translation>查找任务</translation>
    </message>
    <message>
        <source>Morph</source>
        <translation>变形</translation>
    </message>
    <message>
        <source>before: %1</source>
        <translation>之前：%1</translation>
    </message>
    <message>
        <source>What of the two timelines lies on the same moment</source>
        <translation>两条时间线以什么对齐到同一时刻</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::ComparisonReport</name>
    <message>
        <source>Errors</source>
        <translation>误差</translation>
    </message>
    <message>
        <source>Why the step differs</source>
        <translation>单步差异原因</translation>
    </message>
    <message>
        <source>Worst tasks</source>
        <translation>误差最大的任务</translation>
    </message>
    <message>
        <source>Notes</source>
        <translation>备注</translation>
    </message>
    <message>
        <source>Errors of the prediction</source>
        <translation>预测误差</translation>
    </message>
    <message>
        <source>what</source>
        <translation>项目</translation>
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
        <source>mean error of a task</source>
        <translation>任务平均误差</translation>
    </message>
    <message>
        <source>tasks</source>
        <translation>任务</translation>
    </message>
    <message>
        <source>step</source>
        <translation>单步</translation>
    </message>
    <message>
        <source>kind</source>
        <translation>种类</translation>
    </message>
    <message>
        <source>stream</source>
        <translation>流</translation>
    </message>
    <message>
        <source>peak memory, rank %1</source>
        <translation>峰值内存，rank %1</translation>
    </message>
    <message>
        <source>tasks took longer</source>
        <translation>任务耗时更长</translation>
    </message>
    <message>
        <source>waited for messages</source>
        <translation>等待消息</translation>
    </message>
    <message>
        <source>waited otherwise</source>
        <translation>其他等待</translation>
    </message>
    <message>
        <source>&lt;p&gt;Largest differences: predicted, measured&lt;/p&gt;</source>
        <translation>&lt;p&gt;最大差异：预测值、实测值&lt;/p&gt;</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::ErrorDialog</name>
    <message>
        <source>Hint: %1</source>
        <translation>提示：%1</translation>
    </message>
    <message>
        <source>This input cannot be used.</source>
        <translation>无法使用此输入。</translation>
    </message>
    <message>
        <source>This machine refused.</source>
        <translation>本机无法完成该操作。</translation>
    </message>
    <message>
        <source>Meshwright has a fault. Please report it with the text below.</source>
        <translation>Meshwright 出现内部错误，请附上以下文字报告。</translation>
    </message>
    <message>
        <source>What went wrong</source>
        <translation>错误详情</translation>
    </message>
    <message>
        <source>&amp;Copy text</source>
        <translation>复制文本(&amp;C)</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::ExploreScreen</name>
    <message>
        <source>stages are not equally long</source>
        <translation>各阶段耗时不等</translation>
    </message>
    <message>
        <source>messages take time</source>
        <translation>消息传输需要时间</translation>
    </message>
    <message>
        <source>m &lt; p: the pipeline never fills</source>
        <translation>m &lt; p：流水线从未填满</translation>
    </message>
    <message>
        <source>m is no multiple of p</source>
        <translation>m 不是 p 的倍数</translation>
    </message>
    <message>
        <source>F, B and W are not equally long</source>
        <translation>F、B、W 耗时不等</translation>
    </message>
    <message>
        <source>Inspector</source>
        <translation>检查器</translation>
    </message>
    <message>
        <source>Simulating…</source>
        <translation>正在模拟…</translation>
    </message>
    <message>
        <source>Slow position %1 down ×%2</source>
        <translation>位置 %1 减速 ×%2</translation>
    </message>
    <message>
        <source>Bubble, simulated: &lt;b&gt;%1&lt;/b&gt;. No closed form is known for %2.</source>
        <translation>模拟气泡：&lt;b&gt;%1&lt;/b&gt;。%2 没有已知的闭式公式。</translation>
    </message>
    <message>
        <source>every assumption of the formula holds</source>
        <translation>公式的所有假设均成立</translation>
    </message>
    <message>
        <source>they differ because %1</source>
        <translation>两者不同，因为%1</translation>
    </message>
    <message>
        <source>, and </source>
        <translation>，并且</translation>
    </message>
    <message>
        <source>Bubble by formula: %1 = %2 = &lt;b&gt;%3&lt;/b&gt; · simulated: &lt;b&gt;%4&lt;/b&gt; · %5</source>
        <translation>公式气泡：%1 = %2 = &lt;b&gt;%3&lt;/b&gt; · 模拟值：&lt;b&gt;%4&lt;/b&gt; · %5</translation>
    </message>
    <message>
        <source>Rank, time or both: r12 3.5ms</source>
        <translation>rank、时间或两者：r12 3.5ms</translation>
    </message>
    <message>
        <source>Part of a slice&apos;s name: F7, all-reduce</source>
        <translation>片段名称的一部分：F7、all-reduce</translation>
    </message>
    <message>
        <source>No such place: %1</source>
        <translation>没有这个位置：%1</translation>
    </message>
    <message numerus="yes">
        <source>%n hit(s)</source>
        <translation>
            <numerusform>%n 个匹配</numerusform>
        </translation>
    </message>
    <message>
        <source>nothing is shown yet</source>
        <translation>尚无内容</translation>
    </message>
    <message>
        <source>only whole passes can be moved</source>
        <translation>只能移动完整的计算段</translation>
    </message>
    <message>
        <source>The pass stays where it was: %1</source>
        <translation>计算段保持原位：%1</translation>
    </message>
    <message>
        <source>Move a pass</source>
        <translation>移动计算段</translation>
    </message>
    <message>
        <source>Open %1</source>
        <translation>打开 %1</translation>
    </message>
    <message>
        <source>&amp;Arrows of messages</source>
        <translation>消息箭头(&amp;A)</translation>
    </message>
    <message>
        <source>Of the selection, from sends to receives</source>
        <translation>选区内从发送到接收</translation>
    </message>
    <message>
        <source>&amp;Bubbles by cause</source>
        <translation>按原因标记气泡(&amp;B)</translation>
    </message>
    <message>
        <source>Hatches every gap by what it waits for</source>
        <translation>按等待原因为空隙加阴影</translation>
    </message>
    <message>
        <source>Co&amp;unters</source>
        <translation>计数器(&amp;U)</translation>
    </message>
    <message>
        <source>Colour by &amp;micro-batch</source>
        <translation>按微批着色(&amp;M)</translation>
    </message>
    <message>
        <source>Instead of by kind</source>
        <translation>而非按种类</translation>
    </message>
    <message>
        <source>Pin as &amp;A</source>
        <translation>固定为 A(&amp;A)</translation>
    </message>
    <message>
        <source>Keeps this scenario as outlines behind the next ones; again: lets it go</source>
        <translation>将当前方案以轮廓形式保留在后续方案之后；再次执行则取消</translation>
    </message>
    <message>
        <source>S&amp;wap with A</source>
        <translation>与 A 交换(&amp;W)</translation>
    </message>
    <message>
        <source>The pinned scenario comes back, this one is pinned</source>
        <translation>恢复固定的方案，并固定当前方案</translation>
    </message>
    <message>
        <source>Make a schedule to &amp;measure</source>
        <translation>定制调度(&amp;M)</translation>
    </message>
    <message>
        <source>Searches orders of its own for these stage times, messages and memory</source>
        <translation>针对当前阶段耗时、消息与内存搜索专用执行顺序</translation>
    </message>
    <message>
        <source>&amp;Copy as one line</source>
        <translation>复制为一行(&amp;C)</translation>
    </message>
    <message>
        <source>The scenario as a command line of meshwright simulate</source>
        <translation>以 meshwright simulate 命令行表示的方案</translation>
    </message>
    <message>
        <source>&amp;Paste a line</source>
        <translation>粘贴一行(&amp;P)</translation>
    </message>
    <message>
        <source>Takes the scenario from a line that was copied</source>
        <translation>从复制的一行恢复方案</translation>
    </message>
    <message>
        <source>&amp;Save plan…</source>
        <translation>保存计划…(&amp;S)</translation>
    </message>
    <message>
        <source>A .plan.json that every command takes</source>
        <translation>所有命令都能读取的 .plan.json</translation>
    </message>
    <message>
        <source>Save &amp;schedule…</source>
        <translation>保存调度…(&amp;S)</translation>
    </message>
    <message>
        <source>PyTorch&apos;s schedule CSV</source>
        <translation>PyTorch 调度 CSV</translation>
    </message>
    <message>
        <source>&amp;Export what is shown…</source>
        <translation>导出当前视图…(&amp;E)</translation>
    </message>
    <message>
        <source>PNG, SVG, PDF, CSV or .pftrace of the visible range</source>
        <translation>将可见范围导出为 PNG、SVG、PDF、CSV 或 .pftrace</translation>
    </message>
    <message>
        <source>Copy p&amp;icture</source>
        <translation>复制图片(&amp;I)</translation>
    </message>
    <message>
        <source>What is shown, to the clipboard</source>
        <translation>将当前视图复制到剪贴板</translation>
    </message>
    <message>
        <source>Copy ta&amp;ble</source>
        <translation>复制表格(&amp;B)</translation>
    </message>
    <message>
        <source>Of the area selected, or else the visible slices, for a spreadsheet</source>
        <translation>复制所选区域的统计；未选择时复制可见的切片，供电子表格使用</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>搜索</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>导出</translation>
    </message>
    <message>
        <source>Copy picture</source>
        <translation>复制图片</translation>
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
        <source>Make a schedule to measure</source>
        <translation>定制调度</translation>
    </message>
    <message>
        <source>Schedule made to measure</source>
        <translation>定制的调度</translation>
    </message>
    <message>
        <source>Wrote %1</source>
        <translation>已写入 %1</translation>
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
        <source>Export what is shown</source>
        <translation>导出当前视图</translation>
    </message>
    <message>
        <source>Copied the scenario as one line</source>
        <translation>方案已复制为一行</translation>
    </message>
    <message>
        <source>Paste a line</source>
        <translation>粘贴一行</translation>
    </message>
    <message>
        <source>Explore</source>
        <translation>探索</translation>
    </message>
    <message>
        <source>S&amp;lices as a table</source>
        <translation>以表格显示切片(&amp;L)</translation>
    </message>
    <message>
        <source>What is shown, row by row, to be read or copied</source>
        <translation>逐行列出当前显示内容，便于阅读或复制</translation>
    </message>
    <message>
        <source>Memory, micro-batches in flight and streams under the rows; at first memory where there is room</source>
        <translation>在各行下方显示内存、在途微批和流；起初在空间允许时显示内存</translation>
    </message>
    <message>
        <source>Copy figures as Mar&amp;kdown</source>
        <translation>以 Markdown 复制统计(&amp;K)</translation>
    </message>
    <message>
        <source>What the area selected, or else all that is shown, is busy with</source>
        <translation>所选区域（未选择时为所显示的全部）的时间都用在哪里</translation>
    </message>
    <message>
        <source>Copy figures as &amp;JSON</source>
        <translation>以 JSON 复制统计(&amp;J)</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::HandOver</name>
    <message>
        <source>&amp;For</source>
        <translation>用于(&amp;F)</translation>
    </message>
    <message>
        <source>Program that trains</source>
        <translation>执行训练的程序</translation>
    </message>
    <message>
        <source>The program that is to train by this plan, and its version</source>
        <translation>按此计划训练的程序及其版本</translation>
    </message>
    <message>
        <source>C&amp;opy</source>
        <translation>复制(&amp;O)</translation>
    </message>
    <message>
        <source>The text below, to the clipboard</source>
        <translation>将下方文本复制到剪贴板</translation>
    </message>
    <message>
        <source>Commands for this plan</source>
        <translation>此计划的命令</translation>
    </message>
    <message>
        <source># the same plan on the command line
%1

# carried out on this machine, if it is small enough
%2</source>
        <translation># 命令行中的同一计划
%1

# 若规模足够小，可在本机执行
%2</translation>
    </message>
    <message>
        <source>It cannot be told:</source>
        <translation>以下内容无法告知该程序：</translation>
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
        <translation>任务</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>进度</translation>
    </message>
    <message>
        <source>Jobs</source>
        <translation>任务</translation>
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
        <source>Gives this job up</source>
        <translation>放弃此任务</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::JobProgress</name>
    <message>
        <source>Progress</source>
        <translation>进度</translation>
    </message>
    <message>
        <source>%1, and %2 more</source>
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
        <source>Keys</source>
        <translation>快捷键</translation>
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
        <translation>计划</translation>
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
</context>
<context>
    <name>meshwright::gui::KpiStrip</name>
    <message>
        <source>Step</source>
        <translation>单步</translation>
    </message>
    <message>
        <source>Time of one training step, from first start to last end</source>
        <translation>一个训练步的时间，从最早开始到最晚结束</translation>
    </message>
    <message>
        <source>Bubble</source>
        <translation>气泡</translation>
    </message>
    <message>
        <source>Idle share of the busiest device, of the pipeline&apos;s makespan</source>
        <translation>最忙设备在流水线总时长中的空闲占比</translation>
    </message>
    <message>
        <source>Bubble of period</source>
        <translation>周期气泡</translation>
    </message>
    <message>
        <source>The same of the longest device&apos;s own span: what is lost when steps overlap</source>
        <translation>相对于单设备最长跨度的空闲占比：各步可重叠时的损失</translation>
    </message>
    <message>
        <source>MFU</source>
        <translation>MFU</translation>
    </message>
    <message>
        <source>Model FLOP utilisation: useful arithmetic over the device&apos;s peak</source>
        <translation>模型算力利用率：有效运算量与设备峰值之比</translation>
    </message>
    <message>
        <source>Peak memory</source>
        <translation>峰值内存</translation>
    </message>
    <message>
        <source>Fullest device, of its capacity</source>
        <translation>占用最高的设备及其容量</translation>
    </message>
    <message>
        <source>Tokens/s per GPU</source>
        <translation>每 GPU 词元/秒</translation>
    </message>
    <message>
        <source>Tokens of one step over its time and devices</source>
        <translation>每步词元数除以时间与设备数</translation>
    </message>
    <message>
        <source>Lower bound</source>
        <translation>下界</translation>
    </message>
    <message>
        <source>No order of the same passes makes the pipeline shorter; how far it is off</source>
        <translation>相同计算段的任何顺序都不会更短；显示与下界的差距</translation>
    </message>
    <message>
        <source>HFU %1</source>
        <translation>HFU %1</translation>
    </message>
    <message>
        <source>of %1</source>
        <translation>共 %1</translation>
    </message>
    <message>
        <source>⚠ %1 too much</source>
        <translation>⚠ 超出 %1</translation>
    </message>
    <message>
        <source>gap %1</source>
        <translation>差距 %1</translation>
    </message>
    <message>
        <source>not for this plan</source>
        <translation>不适用于此计划</translation>
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
        <source>kernel</source>
        <translation>算子</translation>
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
        <source>bubble, hatched by cause</source>
        <translation>气泡，按原因加阴影</translation>
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
        <source>Loss by step</source>
        <translation>各步损失</translation>
    </message>
    <message>
        <source>step %1: %2</source>
        <translation>步 %1：%2</translation>
    </message>
    <message>
        <source>step</source>
        <translation>单步</translation>
    </message>
    <message>
        <source>loss</source>
        <translation>损失</translation>
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
        <translation>任务</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>退出(&amp;Q)</translation>
    </message>
    <message>
        <source>Stops every job and closes the window</source>
        <translation>停止所有任务并关闭窗口</translation>
    </message>
    <message>
        <source>&amp;Open…</source>
        <translation>打开…(&amp;O)</translation>
    </message>
    <message>
        <source>Plans, traces, schedules, calibrations, models, clusters</source>
        <translation>计划、轨迹、调度、校准、模型、集群</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>打开</translation>
    </message>
    <message>
        <source>Files of Meshwright (%1);;All files (*)</source>
        <translation>Meshwright 文件 (%1);;所有文件 (*)</translation>
    </message>
    <message>
        <source>&amp;Undo</source>
        <translation>撤销(&amp;U)</translation>
    </message>
    <message>
        <source>Takes back the last change of the scenario</source>
        <translation>撤销方案的上一次更改</translation>
    </message>
    <message>
        <source>&amp;Redo</source>
        <translation>重做(&amp;R)</translation>
    </message>
    <message>
        <source>Makes the change again</source>
        <translation>重新执行更改</translation>
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
        <source>The same work in the next order that is possible</source>
        <translation>以下一种可行顺序执行相同的工作</translation>
    </message>
    <message>
        <source>&amp;Previous schedule</source>
        <translation>上一个调度(&amp;P)</translation>
    </message>
    <message>
        <source>The same work in the order before</source>
        <translation>以上一种顺序执行相同的工作</translation>
    </message>
    <message>
        <source>Pre&amp;ferences…</source>
        <translation>首选项…(&amp;F)</translation>
    </message>
    <message>
        <source>Looks, units, keys, language</source>
        <translation>外观、单位、快捷键、语言</translation>
    </message>
    <message>
        <source>Next t&amp;heme</source>
        <translation>切换主题(&amp;H)</translation>
    </message>
    <message>
        <source>Light, dark, high contrast</source>
        <translation>浅色、深色、高对比度</translation>
    </message>
    <message>
        <source>F&amp;ull screen</source>
        <translation>全屏(&amp;U)</translation>
    </message>
    <message>
        <source>Shows the screen %1</source>
        <translation>显示界面“%1”</translation>
    </message>
    <message>
        <source>&amp;Knobs of the scenario</source>
        <translation>方案参数(&amp;K)</translation>
    </message>
    <message>
        <source>Puts the focus on the first knob</source>
        <translation>将焦点移到第一个参数</translation>
    </message>
    <message>
        <source>&amp;Command palette…</source>
        <translation>命令面板…(&amp;C)</translation>
    </message>
    <message>
        <source>Finds every action by its name</source>
        <translation>按名称查找任意操作</translation>
    </message>
    <message>
        <source>&amp;Keys</source>
        <translation>快捷键(&amp;K)</translation>
    </message>
    <message>
        <source>All keys on one sheet</source>
        <translation>全部快捷键一览</translation>
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
        <translation>计划(&amp;P)</translation>
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
        <source>No screen shows %1</source>
        <translation>没有界面可以显示 %1</translation>
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
        <translation>适配</translation>
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
        <source>Order</source>
        <translation>排序</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>导出</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>主题</translation>
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
        <source>activations</source>
        <translation>激活</translation>
    </message>
    <message>
        <source>working</source>
        <translation>临时</translation>
    </message>
    <message>
        <source>logits</source>
        <translation>logits</translation>
    </message>
    <message>
        <source>communication</source>
        <translation>通信</translation>
    </message>
    <message>
        <source>reserved</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>Memory of every pipeline position</source>
        <translation>各流水线位置的内存</translation>
    </message>
    <message>
        <source>pipeline position</source>
        <translation>流水线位置</translation>
    </message>
    <message>
        <source>capacity %1</source>
        <translation>容量 %1</translation>
    </message>
    <message>
        <source>position %1: %2</source>
        <translation>位置 %1：%2</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::MemoryCurve</name>
    <message>
        <source>Memory over time</source>
        <translation>内存随时间变化</translation>
    </message>
    <message>
        <source>Click: that moment in the timeline</source>
        <translation>单击：转到时间线上的该时刻</translation>
    </message>
    <message>
        <source>time in rank %1</source>
        <translation>rank %1 的时间</translation>
    </message>
    <message>
        <source>peak %1 at %2</source>
        <translation>峰值 %1，位于 %2</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::MemoryScreen</name>
    <message>
        <source>Memory at its peak</source>
        <translation>峰值时的内存</translation>
    </message>
    <message>
        <source>&lt;b&gt;Fits.&lt;/b&gt; The fullest device holds %1 of %2: %3 are free.</source>
        <translation>&lt;b&gt;放得下。&lt;/b&gt;占用最高的设备使用 %2 中的 %1，剩余 %3。</translation>
    </message>
    <message>
        <source>&lt;b&gt;Does not fit.&lt;/b&gt; The fullest device would need %1, %2 more than the %3 it has.</source>
        <translation>&lt;b&gt;放不下。&lt;/b&gt;占用最高的设备需要 %1，比其 %3 多 %2。</translation>
    </message>
    <message>
        <source>position</source>
        <translation>位置</translation>
    </message>
    <message>
        <source>all</source>
        <translation>全部</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::ParetoScatter</name>
    <message>
        <source>step time</source>
        <translation>步时间</translation>
    </message>
    <message>
        <source>peak memory</source>
        <translation>峰值内存</translation>
    </message>
    <message>
        <source>Plans by step time and memory</source>
        <translation>按步时间和内存排列的计划</translation>
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
        <source>optimizer</source>
        <translation>优化器</translation>
    </message>
    <message>
        <source>proved optimal among them</source>
        <translation>已证明其中最优</translation>
    </message>
    <message>
        <source>gap %1</source>
        <translation>差距 %1</translation>
    </message>
    <message>
        <source>%1 candidates; ruled out by %2; %3 simulated; %4</source>
        <translation>%1 个候选；被 %2 排除；模拟 %3 个；%4</translation>
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
        <source>Searches every split of the scenario&apos;s devices, every schedule and what to recompute and shard, with the simulator as judge. A few seconds.</source>
        <translation>搜索设备的所有切分、所有调度以及重计算与分片方式，由模拟器评判，需数秒。</translation>
    </message>
    <message>
        <source>Plans, best first</source>
        <translation>计划，最优在前</translation>
    </message>
    <message>
        <source>Only plans with the scenario&apos;s value</source>
        <translation>仅保留取方案当前值的计划</translation>
    </message>
    <message>
        <source>Hold fast:</source>
        <translation>锁定：</translation>
    </message>
    <message>
        <source>schedule</source>
        <translation>调度</translation>
    </message>
    <message>
        <source>micro-batch</source>
        <translation>微批</translation>
    </message>
    <message>
        <source>recompute</source>
        <translation>重计算</translation>
    </message>
    <message>
        <source>Why</source>
        <translation>原因</translation>
    </message>
    <message>
        <source>Against the best</source>
        <translation>与最优对比</translation>
    </message>
    <message>
        <source>Hand over</source>
        <translation>移交</translation>
    </message>
    <message>
        <source>&amp;Search plans</source>
        <translation>搜索计划(&amp;S)</translation>
    </message>
    <message>
        <source>Which split trains this model fastest on these devices</source>
        <translation>在这些设备上以何种切分训练该模型最快</translation>
    </message>
    <message>
        <source>&amp;Cancel the search</source>
        <translation>取消搜索(&amp;C)</translation>
    </message>
    <message>
        <source>&amp;Take the plan over</source>
        <translation>采用该计划(&amp;T)</translation>
    </message>
    <message>
        <source>The chosen plan becomes the scenario of Explore</source>
        <translation>所选计划成为“探索”中的方案</translation>
    </message>
    <message>
        <source>Searching for %1 devices…</source>
        <translation>正在为 %1 个设备搜索…</translation>
    </message>
    <message>
        <source>Search plans</source>
        <translation>搜索计划</translation>
    </message>
    <message>
        <source>Cancelled.</source>
        <translation>已取消。</translation>
    </message>
    <message>
        <source>No plan fits: %1</source>
        <translation>没有可行的计划：%1</translation>
    </message>
    <message>
        <source>Nearest: %1</source>
        <translation>最接近的：%1</translation>
    </message>
    <message>
        <source>split</source>
        <translation>切分</translation>
    </message>
    <message>
        <source>mbs</source>
        <translation>微批大小</translation>
    </message>
    <message>
        <source>step</source>
        <translation>单步</translation>
    </message>
    <message>
        <source>tokens/s/device</source>
        <translation>词元/秒/设备</translation>
    </message>
    <message>
        <source>bubble</source>
        <translation>气泡</translation>
    </message>
    <message>
        <source>exposed</source>
        <translation>暴露</translation>
    </message>
    <message>
        <source>peak memory</source>
        <translation>峰值内存</translation>
    </message>
    <message>
        <source>headroom</source>
        <translation>余量</translation>
    </message>
    <message>
        <source>Enter takes it over into Explore, where every slice of it can be looked at.</source>
        <translation>按回车将其采用到“探索”，可查看每个片段。</translation>
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
        <source>Take over plan %1</source>
        <translation>采用计划 %1</translation>
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
        <source>Gives the search up; the plans found before stay</source>
        <translation>放弃搜索；之前找到的计划保留</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>C&amp;opy what hands the plan over</source>
        <translation>复制交付文本(&amp;O)</translation>
    </message>
    <message>
        <source>Flags or file for the program that was chosen, to the clipboard</source>
        <translation>将所选程序的参数或文件复制到剪贴板</translation>
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
        <source>Looks</source>
        <translation>外观</translation>
    </message>
    <message>
        <source>Keys</source>
        <translation>快捷键</translation>
    </message>
    <message>
        <source>Meshwright sends nothing to anybody.</source>
        <translation>Meshwright 不会向任何人发送数据。</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>主题</translation>
    </message>
    <message>
        <source>As the desktop</source>
        <translation>跟随桌面</translation>
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
        <source>Colours of passes</source>
        <translation>计算段配色</translation>
    </message>
    <message>
        <source>Okabe–Ito (colour-blind safe)</source>
        <translation>Okabe–Ito（色盲友好）</translation>
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
        <source>Times in</source>
        <translation>时间单位</translation>
    </message>
    <message>
        <source>whatever reads best</source>
        <translation>自动选择</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>语言</translation>
    </message>
    <message>
        <source>A new language is spoken from the next start on.</source>
        <translation>新语言在下次启动后生效。</translation>
    </message>
    <message>
        <source>Size of text</source>
        <translation>文字大小</translation>
    </message>
    <message>
        <source>Nothing moves by itself</source>
        <translation>关闭动画</translation>
    </message>
    <message>
        <source>Motion</source>
        <translation>动态效果</translation>
    </message>
    <message>
        <source>Action</source>
        <translation>操作</translation>
    </message>
    <message>
        <source>Key</source>
        <translation>按键</translation>
    </message>
    <message>
        <source>%1 is taken by %2</source>
        <translation>%1 被 %2 占用</translation>
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
        <source>Colours of the whole program</source>
        <translation>整个程序的配色</translation>
    </message>
    <message>
        <source>Of forward, backward and weight passes in timelines</source>
        <translation>时间线中前向、反向与权重计算的颜色</translation>
    </message>
    <message>
        <source>The unit of every time that is shown</source>
        <translation>所有显示时间的单位</translation>
    </message>
    <message>
        <source>Of menus and texts</source>
        <translation>菜单与文字的语言</translation>
    </message>
    <message>
        <source>1 is the size that the desktop asks for</source>
        <translation>1 表示桌面设定的大小</translation>
    </message>
    <message>
        <source>No gliding slices, no smooth zoom</source>
        <translation>切片不滑动，缩放不平滑过渡</translation>
    </message>
    <message>
        <source>Moves the timeline as long as the key is held. Without one: where W, S, A, D lie on an American keyboard</source>
        <translation>按住时移动时间线。未设置时为美式键盘上 W、S、A、D 所在位置的键</translation>
    </message>
    <message>
        <source>Held: nearer</source>
        <translation>按住：放大</translation>
    </message>
    <message>
        <source>Held: further away</source>
        <translation>按住：缩小</translation>
    </message>
    <message>
        <source>Held: earlier</source>
        <translation>按住：向前</translation>
    </message>
    <message>
        <source>Held: later</source>
        <translation>按住：向后</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::ProblemList</name>
    <message>
        <source>Where</source>
        <translation>位置</translation>
    </message>
    <message>
        <source>What</source>
        <translation>问题</translation>
    </message>
    <message>
        <source>What would be right</source>
        <translation>建议</translation>
    </message>
    <message>
        <source>Problems</source>
        <translation>问题</translation>
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
        <source>Carries the scenario out on this machine in real arithmetic and measures its timeline. For small models: the ranks share this machine&apos;s cores.</source>
        <translation>在本机以真实运算执行方案并测量时间线。适用于小模型：各 rank 共享本机核心。</translation>
    </message>
    <message>
        <source>Nothing was measured yet</source>
        <translation>尚无测量</translation>
    </message>
    <message>
        <source>Output of the run</source>
        <translation>运行输出</translation>
    </message>
    <message>
        <source>virtual: CPU time of kernels, modelled messages · wall: the machine&apos;s clock · replay: sleeps as predicted</source>
        <translation>virtual：算子 CPU 时间与模型化消息 · wall：机器时钟 · replay：按预测休眠</translation>
    </message>
    <message>
        <source>C&amp;lock</source>
        <translation>时钟(&amp;L)</translation>
    </message>
    <message>
        <source>R&amp;anks</source>
        <translation>rank 数(&amp;A)</translation>
    </message>
    <message>
        <source>S&amp;teps</source>
        <translation>步数(&amp;T)</translation>
    </message>
    <message>
        <source>&amp;Run the scenario</source>
        <translation>运行方案(&amp;R)</translation>
    </message>
    <message>
        <source>Carries it out on this machine and measures its timeline</source>
        <translation>在本机执行并测量时间线</translation>
    </message>
    <message>
        <source>&amp;Stop the run</source>
        <translation>停止运行(&amp;S)</translation>
    </message>
    <message>
        <source>What was measured until then is kept</source>
        <translation>保留此前的测量结果</translation>
    </message>
    <message>
        <source>&amp;Compare with the prediction</source>
        <translation>与预测比较(&amp;C)</translation>
    </message>
    <message>
        <source>Lays the measured timeline on the predicted one</source>
        <translation>将实测时间线叠加到预测时间线上</translation>
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
        <source>Read measured lanes</source>
        <translation>读取实测行</translation>
    </message>
    <message numerus="yes">
        <source>Done: %n steps.</source>
        <translation>
            <numerusform>完成：%n 步。</numerusform>
        </translation>
    </message>
    <message>
        <source>Ended with exit code %1; the reason stands in the output.</source>
        <translation>以退出码 %1 结束；原因见输出。</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>运行</translation>
    </message>
    <message>
        <source>Prepare the run</source>
        <translation>准备运行</translation>
    </message>
    <message>
        <source>Stopped before it began.</source>
        <translation>尚未开始即已停止。</translation>
    </message>
    <message>
        <source>Waiting for the first step…</source>
        <translation>等待第一步…</translation>
    </message>
    <message>
        <source>What carries out a rank on this machine</source>
        <translation>在本机上以什么执行每个 rank</translation>
    </message>
    <message>
        <source>Training steps that are measured; the median of them is compared</source>
        <translation>要测量的训练步数；比较其中位数</translation>
    </message>
    <message>
        <source>Carries the scenario out on this machine and measures its timeline</source>
        <translation>在本机上执行方案并测量其时间线</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::ScenarioPanel</name>
    <message>
        <source>Job</source>
        <translation>任务</translation>
    </message>
    <message>
        <source>From a file…</source>
        <translation>从文件…</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>What is trained: a preset or a config.json</source>
        <translation>训练对象：预设或 config.json</translation>
    </message>
    <message>
        <source>Cluster</source>
        <translation>集群</translation>
    </message>
    <message>
        <source>What it is trained on: a preset or a TOML file</source>
        <translation>训练环境：预设或 TOML 文件</translation>
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
        <source>Order of forwards and backwards. Alt+← and Alt+→ step through all of them</source>
        <translation>前向与反向的顺序。用 Alt+← 和 Alt+→ 逐一切换</translation>
    </message>
    <message>
        <source>Pipeline devices</source>
        <translation>流水线设备</translation>
    </message>
    <message>
        <source>Consecutive groups of layers, one per device</source>
        <translation>连续的层组，每设备一组</translation>
    </message>
    <message>
        <source>Micro-batches</source>
        <translation>微批数</translation>
    </message>
    <message>
        <source>Of one replica in one step. Below p the pipeline never fills</source>
        <translation>单副本每步的微批数。小于 p 时流水线不会填满</translation>
    </message>
    <message>
        <source>Chunks per device</source>
        <translation>每设备块数</translation>
    </message>
    <message>
        <source>Stages that every device holds</source>
        <translation>每个设备持有的阶段数</translation>
    </message>
    <message>
        <source>Time per stage</source>
        <translation>各阶段时间</translation>
    </message>
    <message>
        <source>Slow position %1 down ×%2</source>
        <translation>位置 %1 减速 ×%2</translation>
    </message>
    <message>
        <source>Split</source>
        <translation>切分</translation>
    </message>
    <message>
        <source>Tensor ranks</source>
        <translation>张量并行</translation>
    </message>
    <message>
        <source>Parts of every weight matrix</source>
        <translation>每个权重矩阵的切分数</translation>
    </message>
    <message>
        <source>Replicas</source>
        <translation>副本数</translation>
    </message>
    <message>
        <source>Copies of the model; micro-batches stay, the global batch follows</source>
        <translation>模型副本；微批数不变，全局批随之变化</translation>
    </message>
    <message>
        <source>Context ranks</source>
        <translation>上下文并行</translation>
    </message>
    <message>
        <source>Parts of the sequence</source>
        <translation>序列的切分数</translation>
    </message>
    <message>
        <source>Expert ranks</source>
        <translation>专家并行</translation>
    </message>
    <message>
        <source>Parts of the set of experts</source>
        <translation>专家集合的切分数</translation>
    </message>
    <message>
        <source>Sequence parallelism</source>
        <translation>序列并行</translation>
    </message>
    <message>
        <source>Norms and dropouts are cut along the sequence over the tensor ranks</source>
        <translation>归一化与 dropout 在张量并行组内沿序列切分</translation>
    </message>
    <message>
        <source>ZeRO</source>
        <translation>ZeRO</translation>
    </message>
    <message>
        <source>What is cut over the replicas: optimizer state, gradients, parameters</source>
        <translation>在副本间切分：优化器状态、梯度、参数</translation>
    </message>
    <message>
        <source>0: nothing</source>
        <translation>0：不切分</translation>
    </message>
    <message>
        <source>1: optimizer state</source>
        <translation>1：优化器状态</translation>
    </message>
    <message>
        <source>2: and gradients</source>
        <translation>2：及梯度</translation>
    </message>
    <message>
        <source>3: and parameters</source>
        <translation>3：及参数</translation>
    </message>
    <message>
        <source>Recompute</source>
        <translation>重计算</translation>
    </message>
    <message>
        <source>Activations that are worked out twice instead of kept</source>
        <translation>不保存而重新计算的激活</translation>
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
        <translation>全部</translation>
    </message>
    <message>
        <source>Batch</source>
        <translation>批</translation>
    </message>
    <message>
        <source>Sequences per micro-batch</source>
        <translation>每微批序列数</translation>
    </message>
    <message>
        <source>The number of micro-batches stays, the global batch follows</source>
        <translation>微批数不变，全局批随之变化</translation>
    </message>
    <message>
        <source>Tokens per sequence</source>
        <translation>序列长度</translation>
    </message>
    <message>
        <source>Length of one sequence</source>
        <translation>单个序列的长度</translation>
    </message>
    <message>
        <source>Numbers</source>
        <translation>数值格式</translation>
    </message>
    <message>
        <source>Format of the matrix products</source>
        <translation>矩阵乘的数值格式</translation>
    </message>
    <message>
        <source>Pass times</source>
        <translation>计算段时间</translation>
    </message>
    <message>
        <source>By hand instead of the cost model</source>
        <translation>手动指定，不用代价模型</translation>
    </message>
    <message>
        <source>Every stage takes the same; the bars above change single positions</source>
        <translation>各阶段相同；上方条形可改变单个位置</translation>
    </message>
    <message>
        <source>Forward</source>
        <translation>前向</translation>
    </message>
    <message>
        <source>One micro-batch on one stage</source>
        <translation>一个阶段上的一个微批</translation>
    </message>
    <message>
        <source>Input gradient</source>
        <translation>输入梯度</translation>
    </message>
    <message>
        <source>What the stage in front waits for</source>
        <translation>前一阶段所等待的</translation>
    </message>
    <message>
        <source>Weight gradient</source>
        <translation>权重梯度</translation>
    </message>
    <message>
        <source>May be done at any time after the input gradient</source>
        <translation>可在输入梯度之后任意时刻完成</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>消息</translation>
    </message>
    <message>
        <source>From stage to stage, beside the work</source>
        <translation>阶段之间，与计算并行</translation>
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
        <source>Pass times by hand</source>
        <translation>手动计算段时间</translation>
    </message>
    <message>
        <source>Pass times of the cost model</source>
        <translation>代价模型的计算段时间</translation>
    </message>
    <message>
        <source>Schedule %1</source>
        <translation>调度 %1</translation>
    </message>
    <message>
        <source>edited by hand</source>
        <translation>手动编辑</translation>
    </message>
    <message>
        <source>%1 devices, %2 sequences a step</source>
        <translation>%1 个设备，每步 %2 个序列</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::SliceTable</name>
    <message>
        <source>Slices shown</source>
        <translation>当前显示的切片</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::StageBars</name>
    <message>
        <source>Time of every pipeline position</source>
        <translation>各流水线位置的时间</translation>
    </message>
    <message>
        <source>Drag a bar to slow a pipeline position down; double click to set it back</source>
        <translation>拖动条形使该位置变慢；双击恢复</translation>
    </message>
    <message>
        <source>Pipeline position %1: %2 a micro-batch, %3 times as priced.
Drag to change, double click to set it back.</source>
        <translation>流水线位置 %1：每微批 %2，为预测的 %3 倍。
拖动更改，双击恢复。</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::SweepScreen</name>
    <message>
        <source>bubble between steps</source>
        <translation>步间气泡</translation>
    </message>
    <message>
        <source>bubble of the makespan</source>
        <translation>总时长气泡</translation>
    </message>
    <message>
        <source>step time</source>
        <translation>步时间</translation>
    </message>
    <message>
        <source>MFU</source>
        <translation>MFU</translation>
    </message>
    <message>
        <source>tokens per second and device</source>
        <translation>每设备每秒词元</translation>
    </message>
    <message>
        <source>peak memory</source>
        <translation>峰值内存</translation>
    </message>
    <message>
        <source>&amp;Figure</source>
        <translation>指标(&amp;F)</translation>
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
    <message>
        <source>Every schedule over the number of micro-batches</source>
        <translation>所有调度 × 微批数</translation>
    </message>
    <message>
        <source>Next &amp;figure of the sweep</source>
        <translation>下一个指标(&amp;F)</translation>
    </message>
    <message>
        <source>Bubble, step time, MFU, tokens, memory</source>
        <translation>气泡、步时间、MFU、词元、内存</translation>
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
        <source>hatched: does not fit in memory · –: cannot be (%1 of %2) · click: take over</source>
        <translation>阴影：内存不足 · –：不可行（%2 中的 %1）· 单击：采用</translation>
    </message>
    <message>
        <source>Take over %1 %2, %3 %4</source>
        <translation>采用 %1 %2，%3 %4</translation>
    </message>
    <message>
        <source>What the cells say and the lines follow</source>
        <translation>单元格显示、等值线所依据的指标</translation>
    </message>
    <message>
        <source>The knob that changes upwards</source>
        <translation>沿纵向变化的参数</translation>
    </message>
    <message>
        <source>The knob that changes to the right</source>
        <translation>沿横向变化的参数</translation>
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
        <translation>种类</translation>
    </message>
    <message>
        <source>Micro-batch</source>
        <translation>微批</translation>
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
        <translation>松弛</translation>
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
        <translation>可见片段 %1</translation>
    </message>
    <message>
        <source>Timeline</source>
        <translation>时间线</translation>
    </message>
    <message>
        <source>Rows of ranks over time; a table of slices</source>
        <translation>各 rank 随时间的行；片段表</translation>
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
        <source>stage %1</source>
        <translation>阶段 %1</translation>
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
        <translation>内存</translation>
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
        <source>shown: %1</source>
        <translation>显示：%1</translation>
    </message>
    <message>
        <source>Δt %1</source>
        <translation>Δt %1</translation>
    </message>
    <message>
        <source>stage × %1</source>
        <translation>阶段 × %1</translation>
    </message>
    <message>
        <source>stays where it is</source>
        <translation>保持原位</translation>
    </message>
    <message>
        <source>place %1 in its row</source>
        <translation>行内第 %1 位</translation>
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
        <source>Earlier (A)</source>
        <translation>向前 (A)</translation>
    </message>
    <message>
        <source>Later (D)</source>
        <translation>向后 (D)</translation>
    </message>
    <message>
        <source>Show everything</source>
        <translation>显示全部</translation>
    </message>
    <message>
        <source>Go to the end</source>
        <translation>转到末尾</translation>
    </message>
    <message>
        <source>Centre the selection, then fit it</source>
        <translation>居中选区，再适应窗口</translation>
    </message>
    <message>
        <source>Next slice of the row</source>
        <translation>该行下一个片段</translation>
    </message>
    <message>
        <source>Previous slice of the row</source>
        <translation>该行上一个片段</translation>
    </message>
    <message>
        <source>Follow to what waits for it</source>
        <translation>转到等待它的片段</translation>
    </message>
    <message>
        <source>Follow back to what it waited for</source>
        <translation>转到它所等待的片段</translation>
    </message>
    <message>
        <source>Selection to area</source>
        <translation>选区转为区域</translation>
    </message>
    <message>
        <source>Cursors around the selection</source>
        <translation>用游标标记选区</translation>
    </message>
    <message>
        <source>Next search hit</source>
        <translation>下一个匹配</translation>
    </message>
    <message>
        <source>Previous search hit</source>
        <translation>上一个匹配</translation>
    </message>
    <message>
        <source>Next bubble, largest first</source>
        <translation>下一个气泡（由大到小）</translation>
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
        <source>Pin the row, or let it go</source>
        <translation>固定或取消固定该行</translation>
    </message>
    <message>
        <source>Same time, next row</source>
        <translation>同一时刻，下一行</translation>
    </message>
    <message>
        <source>Same time, previous row</source>
        <translation>同一时刻，上一行</translation>
    </message>
    <message>
        <source>Rows further down</source>
        <translation>向下翻行</translation>
    </message>
    <message>
        <source>Rows further up</source>
        <translation>向上翻行</translation>
    </message>
    <message>
        <source>Clear the selection</source>
        <translation>清除选区</translation>
    </message>
    <message>
        <source>Order ranks by number, stage or work</source>
        <translation>按编号、阶段或工作量排列 rank</translation>
    </message>
    <message>
        <source>All replicas</source>
        <translation>全部副本</translation>
    </message>
    <message>
        <source>Streams of all ranks</source>
        <translation>所有 rank 的流</translation>
    </message>
    <message>
        <source>Make position %1 20 % slower</source>
        <translation>使位置 %1 慢 20 %</translation>
    </message>
    <message>
        <source>Position %1 at its own speed</source>
        <translation>位置 %1 恢复原速</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::TopologyMap</name>
    <message>
        <source>Devices in their nodes</source>
        <translation>节点中的设备</translation>
    </message>
    <message>
        <source>node %1</source>
        <translation>节点 %1</translation>
    </message>
    <message>
        <source>rank %1: pp %2, dp %3, cp %4, tp %5</source>
        <translation>rank %1：pp %2，dp %3，cp %4，tp %5</translation>
    </message>
    <message>
        <source>network %1</source>
        <translation>网络 %1</translation>
    </message>
    <message>
        <source>%1 of its link&apos;s bandwidth, mean over a step</source>
        <translation>占其链路带宽的 %1（一步内平均）</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::TopologyScreen</name>
    <message>
        <source>NVLink switches</source>
        <translation>NVLink 交换机</translation>
    </message>
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
        <source>&amp;Groups of</source>
        <translation>分组(&amp;G)</translation>
    </message>
    <message>
        <source>Groups of</source>
        <translation>分组</translation>
    </message>
    <message>
        <source>Next &amp;axis of the topology</source>
        <translation>下一个并行轴(&amp;A)</translation>
    </message>
    <message>
        <source>Colours devices by tensor, context, data or pipeline groups</source>
        <translation>按张量、上下文、数据或流水线组为设备着色</translation>
    </message>
    <message>
        <source>%1 × %2, %3 in a node, %4 at %5 per device</source>
        <translation>%1 × %2，每节点 %3 个，%4，每设备 %5</translation>
    </message>
    <message>
        <source>; between nodes %1 ports of %2</source>
        <translation>；节点间 %1 个端口，每个 %2</translation>
    </message>
    <message>
        <source>&lt;tr&gt;&lt;td&gt;&lt;b&gt;%1&lt;/b&gt;&lt;/td&gt;&lt;td&gt;%2 ranks: %3&lt;/td&gt;&lt;td&gt;%4&lt;/td&gt;&lt;td&gt;the step waits %5 for it&lt;/td&gt;&lt;/tr&gt;</source>
        <translation>&lt;tr&gt;&lt;td&gt;&lt;b&gt;%1&lt;/b&gt;&lt;/td&gt;&lt;td&gt;%2 个 rank：%3&lt;/td&gt;&lt;td&gt;%4&lt;/td&gt;&lt;td&gt;单步为其等待 %5&lt;/td&gt;&lt;/tr&gt;</translation>
    </message>
    <message>
        <source>inside one node</source>
        <translation>单节点内</translation>
    </message>
    <message>
        <source>over %1 nodes</source>
        <translation>跨 %1 个节点</translation>
    </message>
    <message>
        <source>Topology</source>
        <translation>拓扑</translation>
    </message>
    <message>
        <source>&lt;b&gt;Rank %1&lt;/b&gt; · every box: the rank, and ·its place in its group; framed: the same group</source>
        <translation>&lt;b&gt;Rank %1&lt;/b&gt; · 每个方框：rank 及其在组内的位置（·）；加框者属于同一组</translation>
    </message>
    <message>
        <source>Links, fullest first</source>
        <translation>链路，最满的在前</translation>
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
        <source>share</source>
        <translation>占比</translation>
    </message>
    <message>
        <source>Find what links carry</source>
        <translation>统计链路流量</translation>
    </message>
    <message>
        <source>Mean over a step: messages between stages and all collectives, every direction of every link</source>
        <translation>一步内的平均值：阶段之间的消息和全部集合通信，每条链路的每个方向</translation>
    </message>
    <message>
        <source>Too many ranks to add up what their links carry</source>
        <translation>rank 太多，无法统计各链路的流量</translation>
    </message>
    <message>
        <source>%1: %2 of %3, mean over a step</source>
        <translation>%1：%3 中的 %2，一步内平均</translation>
    </message>
    <message>
        <source>Devices that work on one thing together have one colour: tp, cp, dp or pp</source>
        <translation>协同工作的设备同色：tp、cp、dp 或 pp</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::Waterfall</name>
    <message>
        <source>Difference of two plans</source>
        <translation>两个计划的差异</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::WelcomeScreen</name>
    <message>
        <source>The textbook bubble</source>
        <translation>教科书气泡</translation>
    </message>
    <message>
        <source>1F1B, four equal stages: (p − 1) / (m + p − 1), to the last digit</source>
        <translation>1F1B，四个相同阶段：(p − 1) / (m + p − 1)，分毫不差</translation>
    </message>
    <message>
        <source>Interleaving</source>
        <translation>交错调度</translation>
    </message>
    <message>
        <source>GPT-3 175B in three chunks per device: a smaller bubble, more messages</source>
        <translation>GPT-3 175B，每设备三块：气泡更小，消息更多</translation>
    </message>
    <message>
        <source>Zero bubble</source>
        <translation>零气泡</translation>
    </message>
    <message>
        <source>Weight gradients fill the gaps of 1F1B at the same memory</source>
        <translation>以相同内存，用权重梯度填补 1F1B 的空隙</translation>
    </message>
    <message>
        <source>DualPipeV</source>
        <translation>DualPipeV</translation>
    </message>
    <message>
        <source>Forwards and backwards from both ends of a V</source>
        <translation>从 V 形两端执行前向与反向</translation>
    </message>
    <message>
        <source>A straggler</source>
        <translation>掉队者</translation>
    </message>
    <message>
        <source>One stage is 30 % slower: who waits, and for whom?</source>
        <translation>一个阶段慢 30 %：谁在等谁？</translation>
    </message>
    <message>
        <source>GPT-3 on 1,024 GPUs</source>
        <translation>1,024 个 GPU 上的 GPT-3</translation>
    </message>
    <message>
        <source>16 stages, 6 chunks, 8 replicas of 8 tensor ranks</source>
        <translation>16 个阶段，6 块，8 副本 × 8 路张量并行</translation>
    </message>
    <message>
        <source>Plan, simulate and run the parallel training of large models.</source>
        <translation>规划、模拟并运行大模型并行训练。</translation>
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
        <translation>将文件拖到此处：计划、轨迹（.pftrace、Chrome、Kineto）、调度（CSV）、
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
        <source>Nothing has been opened yet</source>
        <translation>尚未打开任何文件</translation>
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
        <source>The scenario that was shown when the window was closed</source>
        <translation>上次关闭窗口时显示的方案</translation>
    </message>
    <message>
        <source>&amp;Continue where you left off</source>
        <translation>继续上次的工作(&amp;C)</translation>
    </message>
    <message>
        <source>There is no scenario of the last time yet</source>
        <translation>还没有上次的方案</translation>
    </message>
    <message>
        <source>Continue where you left off</source>
        <translation>继续上次的工作</translation>
    </message>
    <message>
        <source>Continue: %1</source>
        <translation>继续：%1</translation>
    </message>
</context>
<context>
    <name>meshwright::gui::Workbench</name>
    <message>
        <source>Simulate</source>
        <translation>模拟</translation>
    </message>
    <message>
        <source>Find causes of gaps</source>
        <translation>查找空隙原因</translation>
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
</context>
</TS>
