// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"math"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// TestTheNextLookIsNeitherAtOnceNorFarAway: what is left of a second counts as one,
// and nobody waits for more than 15 minutes without looking.
func TestTheNextLookIsNeitherAtOnceNorFarAway(t *testing.T) {
	base := converged(t, catalog.Config{NodeUnreachableGrace: time.Hour, StartupFailureThreshold: 900}, cool())
	for left, want := range map[time.Duration]time.Duration{
		time.Nanosecond: time.Second, 400 * time.Millisecond: time.Second, time.Second: time.Second, 1500 * time.Millisecond: 1500 * time.Millisecond,
		14 * time.Minute: 14 * time.Minute, 15*time.Minute + 1: 15 * time.Minute, time.Hour: 15 * time.Minute,
	} {
		in := invariant.Clone(base)
		silence(&in, time.Hour-left)
		out, err := catalog.Reconcile(in)
		require.NoError(t, err)
		require.Empty(t, done(out))
		require.Equal(t, want, out.RequeueAfter, "%s", left)
		require.True(t, catalog.Assess(in).NextDeadline.Equal(in.Now.Add(left)), "the deadline itself is told as it is")
	}
}

// TestTimeZonesDoNotMatter: an instant is the same wherever its clock hangs.
func TestTimeZonesDoNotMatter(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	zone := time.FixedZone("far away", 9*3600+1800)
	for _, cases := range []map[string]reconcileCase{reconcileCases, pollCases} {
		for name, test := range cases {
			in := invariant.Clone(base)
			test.change(&in)
			want, err := catalog.Reconcile(in)
			require.NoError(t, err)
			moved := invariant.Clone(in)
			moveTimes(reflect.ValueOf(&moved).Elem(), zone)
			got, err := catalog.Reconcile(moved)
			require.NoError(t, err)
			require.Equal(t, describe(t, want), describe(t, got), name)
		}
	}
}

// moveTimes writes every time in another zone; the instants stay.
func moveTimes(v reflect.Value, zone *time.Location) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			moveTimes(v.Elem(), zone)
		}
	case reflect.Slice:
		for i := range v.Len() {
			moveTimes(v.Index(i), zone)
		}
	case reflect.Struct:
		if at, ok := v.Interface().(time.Time); ok {
			if v.CanSet() && !at.IsZero() {
				v.Set(reflect.ValueOf(at.In(zone)))
			}
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				moveTimes(v.Field(i), zone)
			}
		}
	}
}

// TestANodeWithinItsGraceChangesNoDecision: as long as the grace of one node lasts,
// Pods are decided about as if the node were ready.
func TestANodeWithinItsGraceChangesNoDecision(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	differ := map[string]bool{}
	for _, cases := range []map[string]reconcileCase{reconcileCases, pollCases} {
		for name, test := range cases {
			in := invariant.Clone(base)
			test.change(&in)
			want, err := catalog.Reconcile(in)
			require.NoError(t, err)
			for i, node := range in.Nodes.Items {
				if !isReady(node) || len(in.Nodes.Items) < 2 || !isReady(in.Nodes.Items[1-i]) {
					continue
				}
				for _, status := range []corev1.ConditionStatus{corev1.ConditionUnknown, corev1.ConditionFalse} {
					doubtful := invariant.Clone(in)
					c := readyOf(doubtful.Nodes.Items[i])
					c.Status, c.LastTransitionTime = status, metav1.NewTime(in.Now.Add(-10*time.Second))
					got, err := catalog.Reconcile(doubtful)
					require.NoError(t, err)
					if !slices.Equal(done(want), done(got)) {
						differ[name] = true
					}
				}
			}
		}
	}
	// Where one of two places has to be chosen, the other one is better; nothing is moved
	// to a node that may not work, and one that does not start a Pod is given its grace.
	require.Equal(t, map[string]bool{
		"a surplus Pod goes": true,
		"a node that came back is not trusted over a replacement":  true,
		"a replacement that starts goes when the node is trusted":  true,
		"a ready Pod is moved ahead of a taint that will evict it": true,
		"an eviction that was announced is anticipated":            true,
		"a Pod that its node does not start is replaced":           true,
	}, differ)
}

// TestEveryMemoryTargetGivesAValidLimit: whatever quantity is asked for, the Go
// runtime takes GOMEMLIMIT, and it is OLM's text where that is valid.
func TestEveryMemoryTargetGivesAValidLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[1-9][0-9]{0,12}(\.[0-9]{1,3})?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi|e[0-9]|E[0-9])?`).Draw(t, "quantity")
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return
		}
		cs := demo()
		cs.UID = "uid"
		cs.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{MemoryTarget: &quantity}
		out, err := catalog.Reconcile(emptyNamespace(catalog.Input{Now: start, CatalogSource: cs, Namespace: olmNamespace()}))
		require.NoError(t, err)
		for _, a := range out.Actions {
			c, ok := a.(olmcore.Create)
			if !ok || c.Target.Kind != "Pod" {
				continue
			}
			limit := c.Object.(*corev1.Pod).Spec.Containers[0].Env[0].Value
			require.True(t, isMemoryLimit(limit), limit)
			upstream := quantity.DeepCopy()
			upstream.Format = resource.BinarySI
			if of := upstream.String() + "B"; isMemoryLimit(of) {
				require.Equal(t, of, limit)
			}
			return
		}
		require.Fail(t, "no Pod was made")
	})
}

var byteCount = regexp.MustCompile(`^([0-9]+)(B|KiB|MiB|GiB|TiB)$`)

// isMemoryLimit reports whether the Go runtime takes a text for GOMEMLIMIT: a number
// and its unit, of fewer than 2^63 bytes.
func isMemoryLimit(text string) bool {
	match := byteCount.FindStringSubmatch(text)
	if match == nil {
		return false
	}
	bytes, _ := new(big.Int).SetString(match[1], 10)
	return bytes.Lsh(bytes, uint(10*strings.Index("BKMGT", match[2][:1]))).IsInt64()
}

// TestAnyIntervalIsBounded: whatever text stands there, polls are between 30 seconds
// and 10 years apart.
func TestAnyIntervalIsBounded(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	rapid.Check(t, func(t *rapid.T) {
		in := invariant.Clone(base)
		poll := &v1alpha1.RegistryPoll{RawInterval: rapid.OneOf(
			rapid.String(), rapid.StringMatching(`-?[0-9]{1,19}(\.[0-9]{1,9})?(ns|us|ms|s|m|h|d)?`),
		).Draw(t, "text")}
		if rapid.Bool().Draw(t, "decoded") {
			poll.Interval = &metav1.Duration{Duration: time.Duration(rapid.SampledFrom([]int64{
				0, -1, 1, math.MaxInt64, math.MinInt64, int64(time.Minute), int64(45 * time.Second),
			}).Draw(t, "interval"))}
		}
		edit(&in, func(s *v1alpha1.CatalogSourceSpec) { s.UpdateStrategy = &v1alpha1.UpdateStrategy{RegistryPoll: poll} })
		in.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now))
		in.Jitter = rapid.Float64Range(0, 0.999).Draw(t, "jitter")
		a := catalog.Assess(in)
		wait := a.NextPoll.Sub(in.Now)
		require.GreaterOrEqual(t, wait, 30*time.Second)
		require.LessOrEqual(t, wait, 11*365*24*time.Hour)
		require.NoError(t, invariant.Laws(result, in))
	})
}

// TestIntervalsAsTheyAreDecoded goes through everything that may stand in
// spec.updateStrategy of an object that is read.
func TestIntervalsAsTheyAreDecoded(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	const parsing = "error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: time: "
	for strategy, want := range map[string]struct {
		every   time.Duration
		message string
	}{
		`null`:                                            {},
		`{}`:                                              {},
		`{"registryPoll":null}`:                           {},
		`{"registryPoll":{}}`:                             {15 * time.Minute, parsing + `invalid duration ""`},
		`{"registryPoll":{"interval":""}}`:                {15 * time.Minute, parsing + `invalid duration ""`},
		`{"registryPoll":{"interval":"45m"}}`:             {45 * time.Minute, ""},
		`{"registryPoll":{"interval":"45s"}}`:             {45 * time.Second, ""},
		`{"registryPoll":{"interval":"1d"}}`:              {15 * time.Minute, parsing + `unknown unit "d" in duration "1d"`},
		`{"registryPoll":{"interval":"45mError.code"}}`:   {15 * time.Minute, parsing + `unknown unit "mError" in duration "45mError.code"`},
		`{"registryPoll":{"interval":"0s"}}`:              {30 * time.Second, "spec.updateStrategy.registryPoll.interval must be positive"},
		`{"registryPoll":{"interval":"-5m"}}`:             {30 * time.Second, "spec.updateStrategy.registryPoll.interval must be positive"},
		`{"registryPoll":{"interval":"1ns"}}`:             {30 * time.Second, "spec.updateStrategy.registryPoll.interval must be at least 30s; using 30s"},
		`{"registryPoll":{"interval":"2562047h47m16s"}}`:  {maxInterval, "spec.updateStrategy.registryPoll.interval must be at most 10 years; using 10 years"},
		`{"registryPoll":{"interval":"99999999999999h"}}`: {15 * time.Minute, parsing + `invalid duration "99999999999999h"`},
	} {
		o, err := olmcore.Decode([]byte(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource","metadata":{"namespace":"olm","name":"cool"},
			"spec":{"sourceType":"grpc","image":"quay.io/example/catalog:v1","updateStrategy":` + strategy + `}}`))
		require.NoError(t, err, strategy)
		in := invariant.Clone(base)
		edit(&in, func(s *v1alpha1.CatalogSourceSpec) {
			s.UpdateStrategy = o.(*v1alpha1.CatalogSource).Spec.UpdateStrategy
		})
		in.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now))
		a := catalog.Assess(in)
		require.Equal(t, want.every == 0, a.NextPoll.IsZero(), strategy)
		if want.every > 0 {
			require.Equal(t, want.every, a.NextPoll.Sub(in.Now), strategy)
		}
		out, err := catalog.Reconcile(in)
		require.NoError(t, err)
		status, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
		require.Equal(t, want.message, status.Status.Message, strategy)
		require.Equal(t, want.message != "", status.Status.Reason == v1alpha1.CatalogSourceIntervalInvalidError, strategy)
		require.Equal(t, want.message != "", meta.FindStatusCondition(status.Status.Conditions, "Degraded").Reason == catalog.ReasonPollIntervalInvalid, strategy)
	}
	_, err := olmcore.Decode([]byte(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource","metadata":{"namespace":"olm","name":"cool"},
		"spec":{"updateStrategy":{"registryPoll":{"interval":45}}}}`))
	require.Error(t, err, "a number is no interval")
	require.True(t, strings.Contains(err.Error(), "number") || strings.Contains(err.Error(), "interval"), err.Error())
}

const maxInterval = 10 * 365 * 24 * time.Hour

// TestARegistryThatMayStartSlowlyIsGivenTheTime: a startup probe of half an hour and
// a deadline of ten minutes would let no new Pod ever serve.
func TestARegistryThatMayStartSlowlyIsGivenTheTime(t *testing.T) {
	for _, test := range []struct {
		config catalog.Config
		want   time.Duration
	}{
		{catalog.Config{}, 10 * time.Minute},
		{catalog.Config{StartupFailureThreshold: 30}, 10 * time.Minute},
		{catalog.Config{StartupFailureThreshold: 180}, time.Hour},
		{catalog.Config{StartupFailureThreshold: math.MaxInt32}, 48 * time.Hour},
	} {
		base := converged(t, test.config, cool())
		in := invariant.Clone(base)
		in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
		addPod(&in, "cool-zz", func(p *corev1.Pod) {
			candidate(p)
			unready(p)
			p.Labels["olm.pod-spec-hash"], p.CreationTimestamp = base.Pods.Items[0].Labels["olm.pod-spec-hash"], metav1.NewTime(in.Now)
		})
		require.True(t, catalog.Assess(in).NextDeadline.Equal(in.Now.Add(test.want)), "%+v", test)
		in.Now = in.Now.Add(test.want) // a stuck candidate is a late one
		out, err := catalog.Reconcile(in)
		require.NoError(t, err)
		require.Equal(t, []string{"delete cool-zz ProgressDeadlineExceeded"}, done(out))
	}
}
