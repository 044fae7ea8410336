// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/stretchr/testify/require"
)

var language = parser.NewParser(parser.Options{})

var engine = promql.NewEngine(promql.EngineOpts{
	MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, Parser: language,
})

// point is one sample of a series.
type point struct {
	at    int64
	value float64
}

func (p point) T() int64                      { return p.at }
func (p point) ST() int64                     { return 0 }
func (p point) F() float64                    { return p.value }
func (p point) H() *histogram.Histogram       { return nil }
func (p point) FH() *histogram.FloatHistogram { return nil }
func (p point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample           { return p }

// history is series with their samples: a storage of Prometheus in memory.
type history []storage.Series

func (h *history) add(of labels.Labels, points []chunks.Sample) {
	*h = append(*h, storage.NewListSeries(of, points))
}

// Querier implements storage.Queryable.
func (h history) Querier(int64, int64) (storage.Querier, error) {
	return querier{storage.NoopQuerier(), h}, nil
}

type querier struct {
	storage.Querier
	history history
}

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &seriesSet{SeriesSet: storage.EmptySeriesSet()}
	for _, s := range q.history {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Labels().Get(m.Name)) }) {
			found.rest = append(found.rest, s)
		}
	}
	slices.SortFunc(found.rest, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return found
}

type seriesSet struct {
	storage.SeriesSet
	at   storage.Series
	rest []storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.at, s.rest = s.rest[0], s.rest[1:]
	return true
}

func (s *seriesSet) At() storage.Series { return s.at }

// alert is one that fires, with its labels but for alertname.
type alert struct {
	Labels      map[string]string
	Annotations map[string]string
}

// firing evaluates a rule from the beginning to a time, and returns the alerts that fire then, sorted.
func firing(t *testing.T, rule rulefmt.Rule, h history, from, to time.Time, step time.Duration) (fire []alert) {
	t.Helper()
	type state struct {
		since time.Time
		value float64
		of    map[string]string
	}
	active := map[string]state{}
	for at := from; !at.After(to); at = at.Add(step) {
		next := map[string]state{}
		for _, sample := range evaluate(t, rule.Expr, h, at) {
			key := sample.Metric.String()
			since := at
			if before, is := active[key]; is {
				since = before.since
			}
			next[key] = state{since, sample.F, sample.Metric.Map()}
		}
		active = next
	}
	for _, key := range slices.Sorted(maps.Keys(active)) {
		s := active[key]
		if to.Sub(s.since) < time.Duration(rule.For) {
			continue
		}
		delete(s.of, model.MetricNameLabel)
		a := alert{Labels: maps.Clone(s.of), Annotations: map[string]string{}}
		if a.Labels == nil {
			a.Labels = map[string]string{}
		}
		for name, text := range rule.Annotations {
			a.Annotations[name] = expand(t, text, s.of, s.value, to)
		}
		maps.Copy(a.Labels, rule.Labels)
		fire = append(fire, a)
	}
	return fire
}

func evaluate(t *testing.T, expression string, h history, at time.Time) promql.Vector {
	t.Helper()
	query, err := engine.NewInstantQuery(t.Context(), h, nil, expression, at)
	require.NoError(t, err, expression)
	defer query.Close()
	result := query.Exec(t.Context())
	require.NoError(t, result.Err, expression)
	vector, err := result.Vector()
	require.NoError(t, err, expression)
	return slices.Clone(vector)
}

// expand writes an annotation as Prometheus does.
func expand(t *testing.T, text string, of map[string]string, value float64, at time.Time) string {
	t.Helper()
	const names = "{{$labels := .Labels}}{{$value := .Value}}"
	data := template.AlertTemplateData(of, nil, "", promql.Sample{F: value, Metric: labels.FromMap(of)})
	out, err := template.NewTemplateExpander(t.Context(), names+text, "annotation", data, model.TimeFromUnixNano(at.UnixNano()), nil, nil, nil).Expand()
	require.NoError(t, err, text)
	require.NotContains(t, out, "no value", text)
	return out
}

// seriesOf parses the notation of promtool, such as 1x5 or 0+2x10.
func seriesOf(t *testing.T, series, values string, interval time.Duration) (labels.Labels, []chunks.Sample) {
	t.Helper()
	of, sequence, err := language.ParseSeriesDesc(series + " " + values)
	require.NoError(t, err, strconv.Quote(series+" "+values))
	var points []chunks.Sample
	for i, v := range sequence {
		if !v.Omitted {
			points = append(points, point{(time.Duration(i) * interval).Milliseconds(), v.Value})
		}
	}
	return of, points
}
