//! Text of clients that would act as syntax elsewhere.
