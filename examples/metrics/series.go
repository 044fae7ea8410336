// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// series are metrics in the making.
type series struct {
	metrics []prometheus.Metric
	// made and leftOut count the series of a metric by namespace, and those beyond max.
	max     int
	made    map[ofNamespace]int
	leftOut map[string]int
	// only are the controllers of what there are metrics of.
	only selection
	// notAssessed counts objects by kind.
	notAssessed map[string]int
}

type ofNamespace struct{ namespace, metric string }

// add adds a series, unless the objects of the namespace have too many of them already; those of no namespace are not
// counted.
func (s *series) add(namespace, metric string, value float64, labels ...string) (added bool) {
	f := row(metric)
	if !s.only.has(f.Controller) {
		return false
	}
	if namespace != "" {
		if s.made == nil {
			s.made, s.leftOut = map[ofNamespace]int{}, map[string]int{}
		}
		of := ofNamespace{namespace, metric}
		if s.made[of] >= s.max {
			s.leftOut[metric]++
			return false
		}
		s.made[of]++
	}
	kind := prometheus.GaugeValue
	if f.Type == Counter {
		kind = prometheus.CounterValue
	}
	for i := range labels {
		labels[i] = clean(labels[i])
	}
	s.metrics = append(s.metrics, prometheus.MustNewConstMetric(f.desc, kind, value, labels...))
	return true
}

// addEach adds a series for each word that was counted.
func (s *series) addEach(metric, namespace string, counts map[string]int) {
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		s.add(namespace, metric, float64(counts[word]), namespace, word)
	}
}

// unassessed notes an object of a kind that nothing can be said about.
func (s *series) unassessed(kind string) {
	if s.notAssessed == nil {
		s.notAssessed = map[string]int{}
	}
	s.notAssessed[kind]++
}

// maxLabel is what the name of an object has at most, in bytes.
const maxLabel = 253

// clean makes any text the value of a label. What had to be changed ends with a hash, so it stays apart from others.
func clean(value string) string {
	if len(value) <= maxLabel && utf8.ValidString(value) && printable.IsPlain(value) {
		return value
	}
	hash := "-" + olmcore.NameSuffix(10, value)
	value = printable.Text(strings.ToValidUTF8(value, ""))
	return strings.ToValidUTF8(value[:min(len(value), maxLabel-len(hash))], "") + hash
}

// maxWord is the length of the longest word that a label takes.
const maxWord = 64

// word returns a CamelCase word of a status as it is, and Other for whatever else stands there: who may write a status
// may write anything.
func word(value string) string {
	isLetter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' }
	if len(value) > maxWord || strings.ContainsFunc(value, func(r rune) bool { return !isLetter(r) }) {
		return "Other"
	}
	return value
}
