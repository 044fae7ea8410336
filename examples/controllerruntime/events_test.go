// SPDX-License-Identifier: Apache-2.0

package olmruntime_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/olmcore/olm/controllers"
	olmruntime "github.com/olmcore/olm/examples/controllerruntime"
	"github.com/olmcore/olm/olmcore"
)

func configMap(name, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "1", ResourceVersion: version}}
}

func TestEventsSayWhatIsNew(t *testing.T) {
	recorder := events.NewFakeRecorder(100)
	told := func() []string {
		var all []string
		for len(recorder.Events) > 0 {
			all = append(all, <-recorder.Events)
		}
		return all
	}
	target := olmcore.RefOf(configMap("a", "1"))
	result := olmcore.Result{
		Transitions: []olmcore.Transition{{Target: target, Type: "Phase", To: "Pending"}, {Target: target, Type: "Phase", From: "Pending", To: "Done", Reason: "Ready", Message: "it is"}},
		Diagnostics: []olmcore.Diagnostic{
			{Severity: olmcore.Warning, Reason: "Blocked", Message: "for 1s", Target: target},
			{Severity: olmcore.Info, Reason: "Long", Message: strings.Repeat("ä", olmruntime.MaxNote), Target: target},
		},
	}
	olmruntime.Tell(recorder, controllers.Report{Result: result, News: result.Diagnostics})
	got := told()
	require.Len(t, got, 4)
	require.Equal(t, []string{"Normal Pending Phase None -> Pending", "Normal Ready Phase Pending -> Done: it is", "Warning Blocked for 1s"}, got[:3])
	require.True(t, utf8.ValidString(got[3]))
	olmruntime.Tell(recorder, controllers.Report{Result: olmcore.Result{Diagnostics: result.Diagnostics}})
	require.Empty(t, told(), "what was said before")
}
