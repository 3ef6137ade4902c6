SET /* c */ x -- d
 = 1