<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name>QObject</name>
    <message numerus="yes">
        <source>%1 of %n rows</source>
        <translation>
            <numerusform>%1 of %n row</numerusform>
            <numerusform>%1 of %n rows</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>meshwright::gui::CalibrationScreen</name>
    <message numerus="yes">
        <source>%n outlier(s) left out</source>
        <translation>
            <numerusform>%n outlier left out</numerusform>
            <numerusform>%n outliers left out</numerusform>
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
    <name>meshwright::gui::ExploreScreen</name>
    <message numerus="yes">
        <source>%n hit(s)</source>
        <translation>
            <numerusform>%n hit</numerusform>
            <numerusform>%n hits</numerusform>
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
        <source>Done: %n steps.</source>
        <translation>
            <numerusform>Done: %n step.</numerusform>
            <numerusform>Done: %n steps.</numerusform>
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
