/** Types of requests and answers, generated from the OpenAPI document of the service. */

import type { components } from "./schema";

type Schemas = components["schemas"];

export type ActName = Schemas["ActName"];
export type AlgorithmName = Schemas["AlgorithmName"];
export type Bucket = Schemas["Bucket"];
export type Caller = Schemas["Caller"];
export type CallerList = Schemas["CallerList"];
export type ChangeList = Schemas["ChangeList"];
export type Check = Schemas["Check"];
export type CheckAnswer = Schemas["CheckAnswer"];
export type CreatedCaller = Schemas["CreatedCaller"];
export type DecisionCounts = Schemas["DecisionCounts"];
export type Explained = Schemas["Explained"];
export type Explanation = Schemas["Explanation"];
export type Figures = Schemas["Figures"];
export type HistoryList = Schemas["HistoryList"];
export type HistoryRecord = Schemas["HistoryEntry"];
export type LimitedSubject = Schemas["LimitedSubject"];
export type LiveHistory = Schemas["LiveHistory"];
export type LiveRule = Schemas["LiveRule"];
export type LiveTick = Schemas["LiveTick"];
export type ModeName = Schemas["ModeName"];
export type NewRule = Schemas["NewRule"];
export type OnErrorName = Schemas["OnErrorName"];
export type PathFormName = Schemas["PathFormName"];
export type Overridden = Schemas["Overridden"];
export type Override = Schemas["Override"];
export type OverrideKind = Schemas["OverrideKind"];
export type OverrideList = Schemas["OverrideList"];
export type PreviewAnswer = Schemas["PreviewAnswer"];
export type RefillName = Schemas["RefillName"];
export type RightName = Schemas["Right"];
export type Rule = Schemas["Rule"];
export type RuleChange = Schemas["RuleChange"];
export type RuleList = Schemas["RuleList"];
export type ScopeName = Schemas["ScopeName"];
export type SetOverride = Schemas["SetOverride"];
export type SharedTier = Schemas["SharedTier"];
export type Stats = Schemas["Stats"];
export type TakeAnswer = Schemas["TakeAnswer"];
export type TopBy = Schemas["TopBy"];
export type TopOffenders = Schemas["TopOffenders"];
export type Violation = Schemas["Violation"];
export type ViolationList = Schemas["ViolationList"];
