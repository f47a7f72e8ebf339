<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name>QObject</name>
    <message numerus="yes">
        <source>%1 on %n row(s)</source>
        <translation>
            <numerusform>%1 on %n row</numerusform>
            <numerusform>%1 on %n rows</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>meshwright::gui::CalibrationScreen</name>
    <message numerus="yes">
        <source>%n outlier(s) hidden</source>
        <translation>
            <numerusform>%n outlier hidden</numerusform>
            <numerusform>%n outliers hidden</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n outlier(s)</source>
        <translation>
            <numerusform>%n outlier</numerusform>
            <numerusform>%n outliers</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>meshwright::gui::CompareScreen</name>
    <message numerus="yes">
        <source>%1: %2 slices on %3 rows, %4 · %n step(s)</source>
        <translation>
            <numerusform>%1: %2 slices on %3 rows, %4 · %n step</numerusform>
            <numerusform>%1: %2 slices on %3 rows, %4 · %n steps</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>meshwright::gui::GraphMap</name>
    <message numerus="yes">
        <source>%1: stage %2, %n operator(s)</source>
        <translation>
            <numerusform>%1: stage %2, %n operator</numerusform>
            <numerusform>%1: stage %2, %n operators</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>meshwright::gui::MainWindow</name>
    <message numerus="yes">
        <source>⚠ %n problem(s)</source>
        <translation>
            <numerusform>⚠ %n problem</numerusform>
            <numerusform>⚠ %n problems</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>meshwright::gui::RunScreen</name>
    <message numerus="yes">
        <source>Finished %n step(s).</source>
        <translation>
            <numerusform>Finished %n step.</numerusform>
            <numerusform>Finished %n steps.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>meshwright::gui::SweepScreen</name>
    <message numerus="yes">
        <source>%n combinations…</source>
        <translation>
            <numerusform>%n combination…</numerusform>
            <numerusform>%n combinations…</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>meshwright::gui::TimelinePrompt</name>
    <message numerus="yes">
        <source>%n match(es)</source>
        <translation>
            <numerusform>%n match</numerusform>
            <numerusform>%n matches</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>meshwright::gui::Workbench</name>
    <message numerus="yes">
        <source>Open %n files</source>
        <translation>
            <numerusform>Open %n file</numerusform>
            <numerusform>Open %n files</numerusform>
        </translation>
    </message>
</context>
</TS>
