// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// Stage is one step of a cleanup. A stage starts when nothing of the one before holds the
// ClusterServiceVersion any more.
type Stage string

// Stages of a cleanup, in order.
const (
	StageOperands    Stage = "Operands"
	StageAdmission   Stage = "Admission"
	StageConversion  Stage = "Conversion"
	StageAPIServices Stage = "APIServices"
	StageWorkload    Stage = "Workload"
	StageRBAC        Stage = "RBAC"
	StageOthers      Stage = "Others"
	StageRelease     Stage = "Release"
)

const (
	// refusedHold is how long an object holds a ClusterServiceVersion whose deletion
	// permissions or a webhook forbid.
	refusedHold = 10 * time.Minute
	// stuckHold is how long an object that stays Terminating does.
	stuckHold = 5 * time.Minute
	// drain is how long the Deployments of the operator may take to stop before its
	// permissions go.
	drain = 30 * time.Second
	// othersHold is how long objects do that nothing depends on.
	othersHold = time.Minute
	// operandBatch is how many operands one result deletes.
	operandBatch = 100
)

// stages is the table of the stages: whoever adds one adds a row.
var stages = []stage{
	{StageOperands, findOperands, limits{forbidden: refusedHold}, operandBatch},
	{StageAdmission, findAdmission, limits{terminating: stuckHold, forbidden: refusedHold, webhook: refusedHold}, 0},
	{StageConversion, findConversions, limits{terminating: stuckHold, forbidden: refusedHold, webhook: refusedHold}, 0},
	{StageAPIServices, findAPIServices, limits{terminating: stuckHold, forbidden: refusedHold, webhook: refusedHold}, 0},
	{StageWorkload, findWorkload, limits{failing: drain, terminating: drain, forbidden: drain, webhook: drain}, 0},
	{StageRBAC, findRBAC, limits{terminating: stuckHold, forbidden: refusedHold, webhook: refusedHold}, 0},
	{StageOthers, findOthers, limits{failing: othersHold, terminating: othersHold, forbidden: othersHold, webhook: othersHold}, 0},
}

// stage is a row of the table. It is done when no target holds the ClusterServiceVersion.
type stage struct {
	name Stage
	// find returns what belongs to the stage.
	find func(*facts) found
	// limits say what a failure means.
	limits limits
	// batch is how many targets one result writes; 0: all.
	batch int
}

// limits say how long a target may hold the ClusterServiceVersion, by the class of the
// error that its write ended with, from the first such error on; 0 is without limit. It is
// left behind after that. One that is Gone or of a kind that is not served (NoMatch) is
// done, and one whose write is Invalid is left behind at once.
type limits struct {
	// failing: Conflict, Transient, and errors of no class.
	failing time.Duration
	// terminating: no error; it was deleted and finalizers hold it. From its deletion on.
	terminating time.Duration
	// forbidden, webhook: the classes of these names.
	forbidden, webhook time.Duration
}

// found is what belongs to a stage.
type found struct {
	targets []target
	// skipped is left behind on purpose.
	skipped []skipped
	// unread are lists that the stage needs and that were not read.
	unread []string
	// ask are the kinds whose instances it must know.
	ask []schema.GroupVersionKind
	// requeue is when the stage is over whatever is left; 0: never.
	requeue time.Duration
}

// target is an object that must go, or change, before the next stage.
type target struct {
	ref olmcore.Ref
	// write is what it waits for; nil when nothing can be written.
	write olmcore.Action
	// deleted is when it was deleted; nil while it is not.
	deleted *metav1.Time
	// why is a few words about what is waited for.
	why string
	// blocked: it will not pass by itself.
	blocked bool
}

// skipped is an object, or a whole kind, that is left behind.
type skipped struct {
	ref olmcore.Ref
	why string
}

func skip(o olmcore.Object, why string) skipped {
	return skipped{olmcore.RefOf(o).Unversioned(), why}
}
