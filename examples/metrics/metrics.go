// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// Defaults.
const (
	DefaultTimeout   = 8 * time.Second // below the ten seconds that Prometheus waits
	DefaultMaxSeries = 1000
)

// Metrics is a prometheus.Collector, safe for use at the same time as all controllers. Make it with New. The exported
// fields may be set before it is used.
type Metrics struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Timeout bounds the reads of one scrape; 0 means DefaultTimeout.
	Timeout time.Duration
	// MaxSeries is how many series of one metric the objects of one namespace may make, those with the first names; 0
	// means DefaultMaxSeries.
	MaxSeries int
	// Catalogs is the content that the controllers resolve from; nil: how often it was read is not told.
	Catalogs *controllers.Catalogs

	only     selection
	options  *controllers.Options
	reader   atomic.Pointer[olmcore.Reader]
	happened happened

	// mu guards what is remembered from one scrape to the next.
	mu     sync.Mutex
	memory map[string]*remembered
	syncs  syncs
}

// New returns Metrics of the controllers that run with these options, which must be set before: it adds itself to Asked
// and to Resolve. The configurations and the shard of the options count for what is assessed. With names of controllers
// there are metrics of what these reconcile alone, so of several managers that each run some of them one exports each
// metric, and kinds that none of its metrics needs are not read.
func New(o *controllers.Options, only ...string) *Metrics {
	m := &Metrics{options: o, only: only, happened: newHappened(), memory: map[string]*remembered{}, syncs: newSyncs()}
	m.happened.join(o)
	return m
}

// Read makes the metrics of what is come from a Reader, a cache if possible, from now on; nil: from none, as before the
// first call. A program with leader election calls it when it is elected: else each of several managers exports the
// same.
func (m *Metrics) Read(r olmcore.Reader) {
	if r == nil {
		m.reader.Store(nil)
		return
	}
	m.reader.Store(&r)
}

// OnReport counts what a reconcile did. It is a value for OnReport of controller.Runner.
func (m *Metrics) OnReport(report controller.Report) {
	m.happened.told(report)
	m.syncs.told(report)
}

// HandleWarningHeaderWithContext takes in a warning of the API server. It makes Metrics a
// rest.WarningHandlerWithContext of client-go; what is not about an InstallPlan's work is left out.
func (m *Metrics) HandleWarningHeaderWithContext(ctx context.Context, code int, _, _ string) {
	if code == miscellaneous && controller.From(ctx) == controllers.InstallPlan {
		m.happened.warnings.Inc()
	}
}

// miscellaneous is the only code of warnings that API servers send.
const miscellaneous = 299

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for i := range families {
		ch <- families[i].desc
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.happened.collectors(m.only) {
		c.Collect(ch)
	}
	r := m.reader.Load()
	if r == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), orDefault(m.Timeout, DefaultTimeout))
	defer cancel()
	s := m.look(ctx, *r)
	for _, metric := range s.metrics {
		ch <- metric
	}
	for _, n := range s.namespaces {
		for _, metric := range n.metrics {
			ch <- metric
		}
	}
}

func (m *Metrics) now() time.Time {
	if m.Now != nil {
		return m.Now().UTC()
	}
	return time.Now().UTC()
}

func orDefault[T ~int | ~int64](value, standard T) T {
	if value <= 0 {
		return standard
	}
	return value
}
