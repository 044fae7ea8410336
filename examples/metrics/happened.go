// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
)

// happened counts what objects do not show.
type happened struct {
	upgrades, warnings                     prometheus.Counter
	actions, errors, transitions, requests *prometheus.CounterVec
	resolutions                            *prometheus.SummaryVec
}

func newHappened() happened {
	counter := func(name string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: row(name).Help})
	}
	vec := func(name string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: row(name).Help}, row(name).Labels)
	}
	const resolutions = "olm_resolution_duration_seconds"
	return happened{
		upgrades: counter("csv_upgrade_count"), warnings: counter("installplan_warnings_total"),
		actions: vec("olm_actions_total"), errors: vec("olm_action_errors_total"),
		transitions: vec("olm_transitions_total"), requests: vec("olm_requests_total"),
		// OLM's quantiles.
		resolutions: prometheus.NewSummaryVec(prometheus.SummaryOpts{
			Name: resolutions, Help: row(resolutions).Help, Objectives: map[float64]float64{0.9: 0.01, 0.95: 0.05, 0.99: 0.001},
		}, row(resolutions).Labels),
	}
}

// collectors are those of what some controllers do.
func (h *happened) collectors(only selection) []prometheus.Collector {
	all := []prometheus.Collector{h.actions, h.errors, h.transitions, h.requests, h.resolutions}
	if only.has(controllers.CSV) {
		all = append(all, h.upgrades)
	}
	if only.has(controllers.InstallPlan) {
		all = append(all, h.warnings)
	}
	return all
}

// join hears what the controllers ask for, and how long it takes to resolve.
func (h *happened) join(o *controllers.Options) {
	asked, resolve := o.Asked, o.Resolve
	o.Asked = func(controller string, key types.NamespacedName, request any) {
		h.requests.WithLabelValues(controller, requestName(request)).Inc()
		if asked != nil {
			asked(controller, key, request)
		}
	}
	if resolve == nil {
		return
	}
	o.Resolve = func(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
		began := time.Now()
		answer, err := resolve(ctx, r, request)
		if errors.Is(err, controllers.ErrPending) {
			return answer, err // nothing was resolved yet, as at each start until catalogs were read
		}
		outcome := "succeeded"
		if err != nil || answer.Failure != nil {
			outcome = "failed"
		}
		h.resolutions.WithLabelValues(outcome).Observe(time.Since(began).Seconds())
		return answer, err
	}
}

// requestName is what a request asks for.
func requestName(request any) string {
	switch request.(type) {
	case *subscription.ResolveRequest:
		return "resolve"
	case catalog.ConnectionRequest:
		return "connect"
	case v1alpha1.BundleLookup:
		return "unpack"
	case serving.Request:
		return "certificate"
	case installplan.SchemaChange:
		return "judge"
	case schema.GroupVersionKind:
		return "operands"
	}
	return "other"
}

func (h *happened) told(report controller.Report) {
	became := became(report)
	for _, a := range report.Result.Actions {
		verb, target, _ := a.Describe()
		switch last, ran := became[target.Key()]; {
		case !ran: // it comes again
		case last.Class == olmcore.ClassNone:
			h.actions.WithLabelValues(report.Controller, string(verb)).Inc()
		default:
			h.errors.WithLabelValues(report.Controller, string(last.Class)).Inc()
		}
	}
	for _, t := range report.Result.Transitions {
		if !written(report, became, t.Target) {
			continue // it is reported again, with the next write
		}
		h.transitions.WithLabelValues(t.Target.Kind, t.Type, word(t.To), string(t.Certainty)).Inc()
		if t.Target.Kind == versions && t.To == string(v1alpha1.CSVPhaseReplacing) && t.From != t.To {
			h.upgrades.Inc()
		}
	}
}

func became(report controller.Report) olmcore.LastResults {
	return olmcore.LastResultsOf(nil, report.Result.Actions, report.Err, time.Time{})
}

// written reports whether what a report says of an object stands: there was nothing to write about it, or it was
// written.
func written(report controller.Report, became olmcore.LastResults, target olmcore.Ref) bool {
	if last, ran := became[target.Key()]; ran {
		return last.Class == olmcore.ClassNone
	}
	return !slices.ContainsFunc(report.Result.Actions, func(a olmcore.Action) bool {
		_, of, _ := a.Describe()
		return of.Key() == target.Key()
	})
}
