// SPDX-License-Identifier: Apache-2.0

// Package metrics exports what the library knows of a cluster, and what its controllers do, as Prometheus metrics:
// under OLM's names and labels where OLM has them, so that its dashboards and alerts go on working, and beside them
// what OLM cannot tell.
//
//	controllers.Options ──> New ──> Metrics, a prometheus.Collector
//	                                    ^  ^
//	controller.Report ──> OnReport ─────┘  └───── Read <── olmcore.Reader, such as a manager's cache
//
// What is, is read and assessed when it is asked for; what happens is counted as the controllers report it. [Families]
// is the table of all metrics, README.md the same to read.
//
// A kind that was not read has no metrics: absent is never 0. The answer about a namespace is remembered as long as the
// resourceVersions of its objects are the same, so a scrape of a cluster at rest costs their comparison.
//
// Labels hold names of objects, and words from a fixed set; a message is never one. The objects of one namespace make
// at most MaxSeries series of a metric, and olm_metrics_series_left_out tells how many more there would be.
package metrics
