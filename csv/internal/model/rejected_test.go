// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

func TestRejectedWritesAreRetriedWithBackoff(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	configMap := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"},
	}
	create := olmcore.CreateOf(configMap, olmcore.Cause{Reason: "Missing"})
	verb, target, _ := create.Describe()
	held := func(message string, left time.Duration) []model.RejectedWrite {
		return []model.RejectedWrite{{Verb: verb, Target: target, Message: message, RetryIn: left}}
	}
	result := func(class olmcore.ErrorClass, count int, last time.Time) olmcore.LastResult {
		return olmcore.LastResult{Class: class, Count: count, Last: last, Message: "no"}
	}
	for name, c := range map[string]struct {
		last     olmcore.LastResult
		due      bool
		rejected []model.RejectedWrite
	}{
		"no earlier result":              {due: true},
		"forbidden a moment ago":         {last: result(olmcore.Forbidden, 1, now), rejected: held("no", time.Minute)},
		"invalid for the second time":    {last: result(olmcore.Invalid, 2, now), rejected: held("no", 2*time.Minute)},
		"rejected by a webhook":          {last: result(olmcore.Webhook, 1, now), rejected: held("no", time.Minute)},
		"forbidden, the backoff is over": {last: result(olmcore.Forbidden, 1, now.Add(-time.Minute)), due: true},
		"forbidden, by a clock ahead":    {last: result(olmcore.Forbidden, 1, now.Add(time.Hour)), rejected: held("no", time.Minute)},
		"a conflict":                     {last: result(olmcore.Conflict, 1, now), due: true},
	} {
		t.Run(name, func(t *testing.T) {
			due, rejected := model.DueWrites([]olmcore.Action{create}, olmcore.LastResults{target.Key(): c.last}, now)
			require.Equal(t, c.rejected, rejected)
			if !c.due {
				require.Empty(t, due)
				return
			}
			require.Equal(t, []olmcore.Action{create}, due)
		})
	}
}
