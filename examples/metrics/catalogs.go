// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/olmcore"
)

// servingStates are the states in which a catalog can be asked; of one that is being deleted nothing is said.
var servingStates = []catalog.State{catalog.StateServing, catalog.StateUpdating, catalog.StateDeleting}

func (m *Metrics) lookAtCatalogs(s *scrape) {
	for _, cs := range s.catalogs.Items {
		if m.Catalogs != nil && m.Catalogs.Reads(keyOf(cs)) > 0 {
			s.add(cs.Namespace, "catalog_source_snapshots_total", float64(m.Catalogs.Reads(keyOf(cs))), cs.Namespace, cs.Name)
		}
		a, err := m.assessCatalog(s, cs)
		switch {
		case errors.Is(err, olmcore.ErrNotRead): // what serves it, for example
		case olmcore.Classify(err) == olmcore.Gone:
		case err != nil || a.State == catalog.StateNotAssessed:
			s.unassessed(catalogs)
		default:
			s.addCatalog(cs, a)
		}
	}
}

// assessCatalog assesses a catalog with the connection that its status records, since clients belong to the controller.
func (m *Metrics) assessCatalog(s *scrape, cs *v1alpha1.CatalogSource) (catalog.Assessment, error) {
	in, err := catalog.Gather(s.ctx, s.reader, keyOf(cs), m.options.Catalog)
	if err != nil {
		return catalog.Assessment{}, err
	}
	in.Now = s.now
	if c := in.CatalogSource.Status.GRPCConnectionState; c != nil {
		in.Connection = &catalog.Connection{Address: c.Address, State: c.LastObservedState, LastConnect: c.LastConnectTime.Time}
		if a := catalog.Assess(in); a.State != catalog.StateNotAssessed {
			return a, nil
		}
		in.Connection = nil // what the status tells is none
	}
	return catalog.Assess(in), nil
}

func (s *scrape) addCatalog(cs *v1alpha1.CatalogSource, a catalog.Assessment) {
	isReady := a.Connected || cs.Status.GRPCConnectionState == nil && a.Ready > 0
	s.add(cs.Namespace, "catalogsource_ready", number(isReady), cs.Namespace, cs.Name)

	if !slices.Contains(servingStates, a.State) {
		since, reason := cs.CreationTimestamp.Time, ""
		if c := meta.FindStatusCondition(a.Conditions, catalog.ConditionAvailable); c != nil {
			reason = c.Reason
		}
		if c := meta.FindStatusCondition(cs.Status.Conditions, catalog.ConditionAvailable); c != nil {
			since = c.LastTransitionTime.Time
			if c.Status == metav1.ConditionTrue {
				since = s.now // it served until now
			}
		}
		s.add(cs.Namespace, "olm_catalog_source_not_serving_timestamp_seconds", seconds(since), cs.Namespace, cs.Name, string(a.State), reason)
	}

	classes, failed := map[catalog.Class]int{}, map[catalog.NodeState]time.Time{}
	for _, p := range a.Pods {
		classes[p.Class]++
		if p.NodeState.LosesPods() {
			failed[p.NodeState] = earlier(failed[p.NodeState], p.NodeSince)
		}
	}
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		s.add(cs.Namespace, "olm_catalog_source_pods", float64(classes[class]), cs.Namespace, cs.Name, string(class))
	}
	for _, state := range slices.Sorted(maps.Keys(failed)) {
		s.add(cs.Namespace, "olm_catalog_source_failed_node_timestamp_seconds", seconds(failed[state]), cs.Namespace, cs.Name, string(state))
	}
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// seconds is a time as Prometheus writes it; the zero one is 0.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}

// earlier returns the earlier of two times; the zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
