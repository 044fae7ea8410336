// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"crypto/sha256"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
)

// goldenHash is the hash of goldenSpec.
const goldenHash = "ai0IRjkMY2BbEkkI9iDnVbZk6gefG8h1Jkp6YL"

// goldenSpec is the JSON of the Deployment that the tests' operator asks for: the
// strategy's spec with the CSV's annotations, OPERATOR_CONDITION_NAME and
// revisionHistoryLimit 1, the fields in the order of the Go types.
const goldenSpec = `{"replicas":1,"selector":{"matchLabels":{"app":"cool"}},"template":{"metadata":{"labels":{"app":"cool"},` +
	`"annotations":{"olm.operatorGroup":"group","olm.operatorNamespace":"ns","olm.targetNamespaces":"ns"}},` +
	`"spec":{"containers":[{"name":"manager","image":"example.com/cool:1","env":[{"name":"OPERATOR_CONDITION_NAME","value":"cool.v1"}],"resources":{}}],` +
	`"serviceAccountName":"cool"}},"strategy":{},"revisionHistoryLimit":1}`

func TestTheSpecHashIsThatOfTheJSONAndANewline(t *testing.T) {
	sum := sha256.Sum224([]byte(goldenSpec + "\n"))
	require.Equal(t, goldenHash, new(big.Int).SetBytes(sum[:]).Text(62))
	in := input(installReady, "AllRequirementsMet", "")
	deploy(t, &in)
	d := in.Deployments.Items[0]
	require.Equal(t, goldenHash, d.Labels["olm.deployment-spec-hash"])
	require.Equal(t, "true", d.Labels[olmcore.LabelManaged])
	require.Equal(t, "cool.v1", d.Labels[olmcore.LabelOwner])
	require.Len(t, d.OwnerReferences, 1)
	require.False(t, *d.OwnerReferences[0].Controller)
}
