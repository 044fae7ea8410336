// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

// lookAtCleanups tells of ClusterServiceVersions that are being deleted how far that is.
func (m *Metrics) lookAtCleanups(s *scrape) {
	if !m.only.has(controllers.CSV) {
		return
	}
	for _, c := range s.versions.Items {
		if c.DeletionTimestamp == nil || c.IsCopied() {
			continue
		}
		a, err := m.assessCleanup(s, c)
		switch {
		case olmcore.Classify(err) == olmcore.Gone:
		case err != nil, slices.ContainsFunc(a.Diagnostics, isNotObserved):
			s.unassessed(versions)
		case a.Stage != "":
			s.add(c.Namespace, "olm_csv_cleanup_timestamp_seconds", seconds(c.DeletionTimestamp.Time), c.Namespace, c.Name, string(a.Stage))
			s.add(c.Namespace, "olm_csv_cleanup_objects", float64(a.Pending), c.Namespace, c.Name, string(a.Stage))
		}
	}
}

// isNotObserved reports whether a list was not read without which it is not known how far a cleanup is.
func isNotObserved(d olmcore.Diagnostic) bool { return d.Reason == cleanup.ReasonNotObserved }

func (m *Metrics) assessCleanup(s *scrape, c *v1alpha1.ClusterServiceVersion) (csv.Assessment, error) {
	in, err := csv.Gather(s.ctx, s.reader, keyOf(c), m.options.CSVConfig())
	if err != nil {
		return csv.Assessment{}, err
	}
	in.Now = s.now
	return csv.Assess(in)
}
